/** Errors about options, in the terms of `llm.chat()`. */
import { LlmError } from '../../errors.ts'
import type { ResolvedTools } from './tools.ts'

/** Names the option that contains the schema. Returns any other error as it is. */
export function withOptionName(cause: unknown, tools: ResolvedTools): unknown {
  if (!LlmError.is(cause)) return cause
  const { code, message, details } = cause
  const option = toOption(details.param ?? '', [...tools.keys()])
  if (option === undefined) return cause
  return new LlmError(code, `${option}: ${message}`, { ...details, param: option }, { cause })
}

function toOption(param: string, names: readonly string[]): string | undefined {
  if (/^format\b/.test(param)) return 'schema'
  const [, index] = /^tools\[(\d+)\]\.parameters\b/.exec(param) ?? []
  return index === undefined ? undefined : `tools.${names[Number(index)]}.parameters`
}
