/** Output of `show`: a section for each part of a model. */
import { table } from './format/table.ts'

/** Response of `/api/show`. Source: Ollama API reference, "Show model information". */
export interface ShowAnswer {
  readonly license?: string
  readonly modelfile?: string
  readonly parameters?: string
  readonly system?: string
  readonly template?: string
  readonly requires?: string
  readonly details: {
    readonly parameter_size: string
    readonly quantization_level: string
    readonly family: string
  }
  readonly messages?: readonly { readonly role: string; readonly content: string }[]
  readonly model_info: Readonly<Record<string, unknown>>
  readonly capabilities?: readonly string[]
  readonly tensors?: readonly {
    readonly name: string
    readonly type: string
    readonly shape: readonly number[]
  }[]
}

type Rows = readonly (readonly string[])[]

export function describeModel(answer: ShowAnswer, verbose: boolean): string {
  const { capabilities = [], parameters = '', system = '', license = '', tensors = [] } = answer
  const sections: Readonly<Record<string, Rows>> = {
    Model: facts(answer),
    Capabilities: capabilities.map((one) => [one]),
    Parameters: linesOf(parameters).map((line) => splitOnce(line)),
    System: opening(system),
    License: opening(license),
    Metadata: verbose ? Object.entries(answer.model_info).map(([key, value]) => [key, brief(value)]) : [],
    Tensors: verbose ? tensors.map(({ name, type, shape }) => [name, type, `[${shape.join(' ')}]`]) : [],
  }
  return Object.entries(sections)
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) => `  ${title}\n${table(rows, '    ')}\n`)
    .join('')
}

function facts({ details, model_info, requires }: ShowAnswer): Rows {
  const architecture = String(model_info['general.architecture'] ?? details.family)
  return [
    ['architecture', architecture],
    ['parameters', details.parameter_size],
    ['context length', model_info[`${architecture}.context_length`]],
    ['embedding length', model_info[`${architecture}.embedding_length`]],
    ['quantization', details.quantization_level],
    ['requires', requires],
  ].flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[String(name), String(value)]]))
}

const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

const splitOnce = (line: string): readonly string[] => line.split(/\s+(.*)/s, 2)

/** Returns the first two lines. `--system` and `--license` print all lines. */
function opening(text: string): Rows {
  const lines = linesOf(text)
  return [...lines.slice(0, 2), ...(lines.length > 2 ? ['...'] : [])].map((line) => [line])
}

/** Shortens lists to three items, since a vocabulary would fill many screens. */
function brief(value: unknown): string {
  if (!Array.isArray(value)) return typeof value === 'string' ? value : JSON.stringify(value)
  const shown = value.slice(0, 3).map((one) => JSON.stringify(one))
  return `[${[...shown, ...(value.length > 3 ? [`...+${value.length - 3} more`] : [])].join(', ')}]`
}
