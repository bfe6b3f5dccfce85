/** Checks that node-llama-cpp is installed in the tested version, and that its native code starts. */
import type { MachineReport } from '@modelmount/core/machine'
import { type Finding, findingsOf } from './finding.ts'

const { ok, warning, problem } = findingsOf('engine')

/** @param tested version of node-llama-cpp with which this command was tested */
export function checkEngine({ engine }: Pick<MachineReport, 'engine'>, tested: string): Finding {
  if ('problem' in engine) {
    // The texts for missing builds end with their command.
    const [, text = engine.problem, command] =
      /^(.*?)(?: (?:Install|Add) it with: (.+))?$/s.exec(engine.problem) ?? []
    return problem(
      text,
      command ?? (/prebuilt/.test(text) ? undefined : `npm install node-llama-cpp@${tested}`),
    )
  }
  const { version, llamaCpp, gpu } = engine
  const name = `node-llama-cpp ${version}, llama.cpp ${llamaCpp}, for ${gpu || 'CPU'}`
  return version === tested
    ? ok(`${name}, starts`)
    : warning(`${name}. Only version ${tested} was tested.`, `npm install node-llama-cpp@${tested}`)
}
