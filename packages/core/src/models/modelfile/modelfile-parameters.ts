/** Parses the values of `PARAMETER` lines, like `FormatParams` and `Options` in Ollama's `api/types.go`. */
import { invalidRequest } from '../../errors.ts'

type ParameterType = 'int' | 'float' | 'bool' | 'texts'

const parameterTypes: Readonly<Record<string, ParameterType>> = {
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

/** Former parameters of Ollama. Old Modelfiles still contain them. */
const removedParameters: readonly string[] = [
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

/** The texts that Go's `strconv.ParseBool` accepts. */
const trueTexts: readonly string[] = ['1', 't', 'T', 'true', 'TRUE', 'True']
const falseTexts: readonly string[] = ['0', 'f', 'F', 'false', 'FALSE', 'False']

/**
 * A repeated parameter replaces the earlier value, but each `stop` is added to a list. Throws
 * `invalid_request` for an unknown name or an invalid value.
 */
export function addParameter(
  file: { readonly parameters: Record<string, unknown>; readonly ignored: string[] },
  name: string,
  text: string,
): void {
  if (removedParameters.includes(name)) {
    file.ignored.push(name)
    return
  }
  const type = Object.hasOwn(parameterTypes, name) ? parameterTypes[name] : undefined
  if (!type) throw invalidRequest(`unknown parameter '${name}'`)
  const before = file.parameters[name]
  file.parameters[name] =
    type === 'texts' ? [...(Array.isArray(before) ? before : []), text] : parseValue(type, text)
}

function parseValue(type: 'int' | 'float' | 'bool', text: string): unknown {
  const value = type === 'bool' ? parseBoolean(text) : parseNumber(type, text)
  if (value === undefined) throw invalidRequest(`invalid ${type} value [${text}]`)
  return value
}

function parseBoolean(text: string): boolean | undefined {
  if (trueTexts.includes(text)) return true
  return falseTexts.includes(text) ? false : undefined
}

function parseNumber(type: 'int' | 'float', text: string): number | undefined {
  const pattern = type === 'int' ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
  const value = pattern.test(text) ? Number(text) : Number.NaN
  return (type === 'int' ? Number.isSafeInteger(value) : Number.isFinite(value)) ? value : undefined
}
