/** Model parameters on the command line. */
import { parseModelfile } from '@modelmount/core/models'

/**
 * Parses values as a Modelfile does: `temperature 0`, `stop "a b"` and `stop c`. Throws `LlmError` for an
 * invalid value.
 */
export function parameterOf(name: string, values: readonly string[]): unknown {
  const lines = values.map((value) => `PARAMETER ${name} ${value}\n`)
  return parseModelfile(`FROM model\n${lines.join('')}`).parameters[name]
}
