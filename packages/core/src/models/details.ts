/** What a model is and what it can do, as far as its file tells. */

import { elementsOf, fileOf, type Gguf, type GgufOptions, readGguf } from './gguf.ts'
import { fileTypes } from './gguf-types.ts'
import type { Model } from './store.ts'

/** `insert`: to fill a gap in a text. */
export type Capability = 'completion' | 'embedding' | 'tools' | 'insert' | 'thinking' | 'vision' | 'audio'

export interface ModelDetails extends Pick<Gguf, 'metadata' | 'tensors'> {
  /** `llama`, or `unknown`. */
  readonly architecture: string
  /** Of a model in several files: what the first of them says. */
  readonly parameterCount: number
  /** The same in short: `3.64M`, `7B`. */
  readonly parameterSize: string
  /** `Q4_K_M`, or `unknown`. */
  readonly quantization: string
  /** Tokens that the model was made for; what it is run with may be less. */
  readonly contextSize?: number
  /** The width of the model, and of its embeddings. */
  readonly embeddingSize?: number
  /** In Jinja. */
  readonly chatTemplate?: string
  /** In the order in which Ollama shows them. */
  readonly capabilities: readonly Capability[]
}

/** Throws `upstream` when the file cannot be used. */
export async function readDetails(
  { path, name }: Model,
  { arrays = false }: Pick<GgufOptions, 'arrays'> = {},
): Promise<ModelDetails> {
  const { metadata, tensors } = await readGguf(path, { arrays, what: fileOf(name) })
  const architecture = textOf(metadata['general.architecture']) ?? 'unknown'
  const parameterCount =
    countOf(metadata['general.parameter_count']) ??
    tensors.reduce((sum, { shape }) => sum + elementsOf(shape), 0)
  const contextSize = countOf(metadata[`${architecture}.context_length`])
  const embeddingSize = countOf(metadata[`${architecture}.embedding_length`])
  const chatTemplate = textOf(metadata['tokenizer.chat_template'])
  return {
    architecture,
    parameterCount,
    parameterSize: parameterSize(parameterCount),
    quantization: fileTypes[countOf(metadata['general.file_type']) ?? -1] ?? 'unknown',
    ...(contextSize !== undefined && { contextSize }),
    ...(embeddingSize !== undefined && { embeddingSize }),
    ...(chatTemplate !== undefined && { chatTemplate }),
    capabilities: capabilities(metadata, architecture, chatTemplate),
    metadata,
    tensors,
  }
}

/** Shape: Ollama `format/format.go`, `HumanNumber`. */
export function parameterSize(count: number): string {
  if (count >= 1e9) return `${short(count / 1e9, 1)}B`
  if (count >= 1e6) return `${short(count / 1e6, 2)}M`
  return count >= 1e3 ? `${short(count / 1e3, 0)}K` : String(count)
}

const short = (value: number, decimals: number): string =>
  value.toFixed(Number.isInteger(value) ? 0 : decimals)

/** What a template never mentions cannot reach the model. Shape: Ollama `server/images.go`, `Capabilities`. */
function capabilities(
  metadata: Gguf['metadata'],
  architecture: string,
  template = '',
): readonly Capability[] {
  const has = (key: string): boolean => Object.hasOwn(metadata, `${architecture}.${key}`)
  const writes = !has('pooling_type')
  const found: Readonly<Partial<Record<Capability, boolean>>> = {
    tools: /tools|tool_call/.test(template),
    insert: writes && gapTokens.every((keys) => keys.some((key) => countOf(metadata[key]) !== undefined)),
    thinking: /<\/?think>/.test(template) || /^gpt-?oss$/.test(architecture),
    completion: writes,
    embedding: has('pooling_type'),
    vision: has('vision.block_count'),
    audio: has('audio.block_count'),
  }
  return (Object.keys(found) as Capability[]).filter((capability) => found[capability])
}

/** The tokens in front of a gap, behind it, and in front of what fills it: by their keys now, and before. */
const gapTokens = [
  ['tokenizer.ggml.fim_pre_token_id', 'tokenizer.ggml.prefix_token_id'],
  ['tokenizer.ggml.fim_suf_token_id', 'tokenizer.ggml.suffix_token_id'],
  ['tokenizer.ggml.fim_mid_token_id', 'tokenizer.ggml.middle_token_id'],
] as const

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
