/** Calls the registries of models. Only if asked to, because nothing else calls other machines. */
import type { LlmOptions } from '@modelmount/core'
import { reachRegistries } from '@modelmount/core/machine'
import { type Finding, findingsOf, quoted } from './finding.ts'

const { ok, problem } = findingsOf('registries')

const timeoutMs = 5_000

export async function checkRegistries(options: LlmOptions, isOnline: boolean): Promise<readonly Finding[]> {
  if (!isOnline) return [ok('Not called. To call them, add --online')]
  const reports = await reachRegistries(options, timeoutMs)
  return reports.map(({ host, problem: reason }) =>
    reason === undefined
      ? ok(`${host} answers`)
      : problem(
          `${host} cannot be reached: ${reason.replace(/^Get "[^"]*": /, '')}.`,
          `curl -v ${quoted(`https://${host}/v2/`)}`,
        ),
  )
}
