/** Details and capabilities of a model, read from its GGUF file and configuration. */

import { parseGoTemplate } from '../../template/go-template/index.ts'
import type { Model } from '../model.ts'
import type { ModelConfig } from '../ollama-store/manifest.ts'
import { countElements, describeFile, type Gguf, type GgufOptions, readGguf } from './gguf.ts'
import type { Capability, ModelDetails } from './model-details.ts'
import { fileTypes } from './types.ts'

type DetailsSource = Pick<Model, 'path' | 'name' | 'config' | 'defaults' | 'projectors'>

/**
 * Values in the model's configuration override values in its file. Throws an `LlmError` `upstream` for an
 * unusable file.
 */
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

/** Family, size and quantization, as Ollama lists them. */
interface ModelSummary extends Pick<ModelDetails, 'parameterSize' | 'quantization'> {
  /** Model family in the configuration, else the architecture in the file. Example: `llama`. */
  readonly family: string
  readonly families: readonly string[] | null
}

/** Values in the configuration override values in the file. Missing texts become empty strings. */
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

/** Rounds like `HumanNumber` in Ollama's `format/format.go`. */
export function formatParameterCount(count: number): string {
  if (count >= 1e9) return `${toShortDecimal(count / 1e9, 1)}B`
  if (count >= 1e6) return `${toShortDecimal(count / 1e6, 2)}M`
  return count >= 1e3 ? `${toShortDecimal(count / 1e3, 0)}K` : String(count)
}

const toShortDecimal = (value: number, decimals: number): string =>
  value.toFixed(Number.isInteger(value) ? 0 : decimals)

/**
 * Detects the capabilities from template and metadata, like `Capabilities` in Ollama's `server/images.go`.
 */
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
  // A model without causal attention cannot generate. Some encoders have no pooling type.
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
  // Ollama lists capabilities in another order if the model has a Go template.
  const found: Readonly<Partial<Record<Capability, boolean>>> =
    goTemplate === undefined ? { ...byTemplate, ...byWeights } : { ...byWeights, ...byTemplate }
  return (Object.keys(found) as Capability[]).filter((capability) => found[capability])
}

/**
 * Detects the features of a Go template. A template with errors has none. Its errors are reported when a
 * request renders it.
 */
function detectTemplateUses(source: string) {
  try {
    const { tools, suffix, thinking } = parseGoTemplate(source).features
    return { tools, suffix, thinking: thinking !== undefined }
  } catch {
    return { tools: false, suffix: false, thinking: false }
  }
}

/**
 * Metadata keys of the prefix, suffix and middle token for fill-in-the-middle. Each token has a current key
 * and a former key.
 */
const infillTokenKeys = [
  ['tokenizer.ggml.fim_pre_token_id', 'tokenizer.ggml.prefix_token_id'],
  ['tokenizer.ggml.fim_suf_token_id', 'tokenizer.ggml.suffix_token_id'],
  ['tokenizer.ggml.fim_mid_token_id', 'tokenizer.ggml.middle_token_id'],
] as const

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
