/** What a model is and what it can do, as far as its file tells. */

import { parseGoTemplate } from '../../template/go-template/index.ts'
import type { Model } from '../model.ts'
import type { ModelConfig } from '../ollama-store/manifest.ts'
import { countElements, describeFile, type Gguf, type GgufOptions, readGguf } from './gguf.ts'
import { fileTypes } from './types.ts'

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

type DetailsSource = Pick<Model, 'path' | 'name' | 'config' | 'defaults' | 'projectors'>

/** Throws `upstream` when the file cannot be used. What a model's configuration says goes before what its file says. */
export async function readDetails(
  { path, name, config = {}, defaults, projectors = [] }: DetailsSource,
  { arrays = false }: Pick<GgufOptions, 'arrays'> = {},
): Promise<ModelDetails> {
  const { metadata, tensors } = await readGguf(path, { arrays, label: describeFile(name) })
  const architecture = textOf(metadata['general.architecture']) ?? 'unknown'
  const parameterCount =
    countOf(metadata['general.parameter_count']) ??
    tensors.reduce((sum, { shape }) => sum + countElements(shape), 0)
  const summary = summarizeModel(config, {
    parameterSize: formatParameterCount(parameterCount),
    quantization: fileTypes[countOf(metadata['general.file_type']) ?? -1] ?? unknown,
  })
  const contextSize = config.context_length || countOf(metadata[`${architecture}.context_length`])
  const embeddingSize = config.embedding_length || countOf(metadata[`${architecture}.embedding_length`])
  const chatTemplate = textOf(metadata['tokenizer.chat_template'])
  const detected = detectCapabilities({
    metadata,
    architecture,
    chatTemplate,
    goTemplate: defaults?.template,
  })
  const added = [...(projectors.length > 0 ? ['vision'] : []), ...(config.capabilities ?? [])]
  return {
    architecture,
    parameterCount,
    parameterSize: summary.parameterSize,
    quantization: summary.quantization,
    ...(contextSize !== undefined && { contextSize }),
    ...(embeddingSize !== undefined && { embeddingSize }),
    ...(chatTemplate !== undefined && { chatTemplate }),
    capabilities: [...new Set([...detected, ...(added as readonly Capability[])])],
    metadata,
    tensors,
  }
}

/** What sort of model it is, in words. */
interface ModelSummary extends Pick<ModelDetails, 'parameterSize' | 'quantization'> {
  /** `llama`; of a model that was made, as it was called then. */
  readonly family: string
  readonly families: readonly string[] | null
}

/** What the model was made as counts more than what its file says. What neither says is empty. */
export function summarizeModel(
  { model_family, model_families, model_type, file_type }: ModelConfig = {},
  file: Partial<Pick<ModelDetails, 'architecture' | 'parameterSize' | 'quantization'>> = {},
): ModelSummary {
  const family = model_family || file.architecture
  return {
    family: family ?? '',
    families: model_families ?? (family === undefined ? null : [family]),
    parameterSize: knownOrUndefined(model_type) ?? file.parameterSize ?? '',
    quantization: knownOrUndefined(file_type) ?? file.quantization ?? '',
  }
}

const unknown = 'unknown'
const knownOrUndefined = (text: string | undefined): string | undefined =>
  text === unknown ? undefined : text || undefined

/** Shape: Ollama `format/format.go`, `HumanNumber`. */
export function formatParameterCount(count: number): string {
  if (count >= 1e9) return `${toShortDecimal(count / 1e9, 1)}B`
  if (count >= 1e6) return `${toShortDecimal(count / 1e6, 2)}M`
  return count >= 1e3 ? `${toShortDecimal(count / 1e3, 0)}K` : String(count)
}

const toShortDecimal = (value: number, decimals: number): string =>
  value.toFixed(Number.isInteger(value) ? 0 : decimals)

/** What a template never mentions cannot reach the model. Shape: Ollama `server/images.go`, `Capabilities`. */
function detectCapabilities({
  metadata,
  architecture,
  chatTemplate = '',
  goTemplate,
}: {
  readonly metadata: Gguf['metadata']
  readonly architecture: string
  readonly chatTemplate: string | undefined
  readonly goTemplate: string | undefined
}): readonly Capability[] {
  const has = (key: string): boolean => Object.hasOwn(metadata, `${architecture}.${key}`)
  // Whose tokens see those behind them has nothing to go on with; some encoders say no more than that.
  const isGenerative = !has('pooling_type') && metadata[`${architecture}.attention.causal`] !== false
  const hasInfillTokens = infillTokenKeys.every((keys) =>
    keys.some((key) => countOf(metadata[key]) !== undefined),
  )
  const uses =
    goTemplate === undefined
      ? {
          tools: /tools|tool_call/.test(chatTemplate),
          thinking: /<\/?think>/.test(chatTemplate),
          suffix: false,
        }
      : detectTemplateUses(goTemplate)
  const byTemplate = {
    tools: uses.tools,
    insert: isGenerative && (hasInfillTokens || uses.suffix),
    thinking: uses.thinking || /^gpt-?oss$/.test(architecture),
  }
  const byWeights = {
    completion: isGenerative,
    embedding: has('pooling_type'),
    vision: has('vision.block_count'),
    audio: has('audio.block_count'),
  }
  // In the order in which Ollama tells them of either template.
  const found: Readonly<Partial<Record<Capability, boolean>>> =
    goTemplate === undefined ? { ...byTemplate, ...byWeights } : { ...byWeights, ...byTemplate }
  return (Object.keys(found) as Capability[]).filter((capability) => found[capability])
}

/** What a template in Go's language mentions; one that is none says so where it is used. */
function detectTemplateUses(source: string) {
  try {
    const { tools, suffix, thinking } = parseGoTemplate(source).features
    return { tools, suffix, thinking: thinking !== undefined }
  } catch {
    return { tools: false, suffix: false, thinking: false }
  }
}

/** The tokens in front of a gap, behind it, and in front of what fills it: by their keys now, and before. */
const infillTokenKeys = [
  ['tokenizer.ggml.fim_pre_token_id', 'tokenizer.ggml.prefix_token_id'],
  ['tokenizer.ggml.fim_suf_token_id', 'tokenizer.ggml.suffix_token_id'],
  ['tokenizer.ggml.fim_mid_token_id', 'tokenizer.ggml.middle_token_id'],
] as const

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
