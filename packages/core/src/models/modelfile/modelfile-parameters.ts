/** What the values of a Modelfile's parameters are. Shape: Ollama `api/types.go`, `Options` and `FormatParams`. */
import { invalidRequest } from '../../errors.ts'

type Kind = 'int' | 'float' | 'bool' | 'texts'

const kinds: Readonly<Record<string, Kind>> = {
  num_ctx: 'int',
  num_batch: 'int',
  num_gpu: 'int',
  main_gpu: 'int',
  use_mmap: 'bool',
  num_thread: 'int',
  draft_num_predict: 'int',
  num_keep: 'int',
  seed: 'int',
  num_predict: 'int',
  top_k: 'int',
  top_p: 'float',
  min_p: 'float',
  typical_p: 'float',
  repeat_last_n: 'int',
  temperature: 'float',
  repeat_penalty: 'float',
  presence_penalty: 'float',
  frequency_penalty: 'float',
  stop: 'texts',
}

/** They were parameters once, and are still in Modelfiles. */
const gone: readonly string[] = [
  'penalize_newline',
  'low_vram',
  'f16_kv',
  'logits_all',
  'vocab_only',
  'use_mlock',
  'mirostat',
  'mirostat_tau',
  'mirostat_eta',
]

/** As Go reads them. */
const yes: readonly string[] = ['1', 't', 'T', 'true', 'TRUE', 'True']
const no: readonly string[] = ['0', 'f', 'F', 'false', 'FALSE', 'False']

/** Of one that comes again the last counts; but each `stop` is one more. Throws `invalid_request`. */
export function addParameter(
  file: { readonly parameters: Record<string, unknown>; readonly ignored: string[] },
  name: string,
  text: string,
): void {
  if (gone.includes(name)) {
    file.ignored.push(name)
    return
  }
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
  if (!kind) throw invalidRequest(`unknown parameter '${name}'`)
  const before = file.parameters[name]
  file.parameters[name] =
    kind === 'texts' ? [...(Array.isArray(before) ? before : []), text] : parsed(kind, text)
}

function parsed(kind: 'int' | 'float' | 'bool', text: string): unknown {
  const value = kind === 'bool' ? truthOf(text) : numberOf(kind, text)
  if (value === undefined) throw invalidRequest(`invalid ${kind} value [${text}]`)
  return value
}

function truthOf(text: string): boolean | undefined {
  if (yes.includes(text)) return true
  return no.includes(text) ? false : undefined
}

function numberOf(kind: 'int' | 'float', text: string): number | undefined {
  const pattern = kind === 'int' ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
  const value = pattern.test(text) ? Number(text) : Number.NaN
  return (kind === 'int' ? Number.isSafeInteger(value) : Number.isFinite(value)) ? value : undefined
}
