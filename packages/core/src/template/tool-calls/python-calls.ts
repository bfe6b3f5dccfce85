/** Prints tool calls as Python, for the template of LFM2, which has no field for them. */
import { isRecord } from '../../util/is-record.ts'
import type { TemplateCall } from '../template-message.ts'

export const printPythonCalls = (calls: readonly TemplateCall['function'][]): string =>
  `<|tool_call_start|>[${calls.map(printCall).join(', ')}]<|tool_call_end|>`

function printCall({ name, arguments: given }: TemplateCall['function']): string {
  const members = isRecord(given) ? Object.entries(given) : []
  return `${name}(${members.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(', ')})`
}
