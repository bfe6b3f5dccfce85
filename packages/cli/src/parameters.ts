/** Parameters as people type them. */
import { parseModelfile } from '@modelmount/core/models'

/** As a Modelfile reads it: `temperature 0`, `stop "a b"` and `stop c`. Throws `LlmError` for a value that the parameter cannot have. */
export function parameterOf(name: string, values: readonly string[]): unknown {
  const lines = values.map((value) => `PARAMETER ${name} ${value}\n`)
  return parseModelfile(`FROM model\n${lines.join('')}`).parameters[name]
}
