import type { GgufInsights } from 'node-llama-cpp'
import { batchSizeOf, groupLimits, type LoadSettings } from './load-settings.ts'

/** Memory of the machine and of a graphics card, in bytes. */
export interface MemoryNeed {
  readonly ram: number
  readonly vram: number
}

export interface MemoryRequest extends MemoryNeed {
  /** Whether less memory of graphics cards is useful, too. */
  readonly acceptsLessVram?: boolean
}

export interface MemoryEstimate extends MemoryNeed {
  /** Part of `ram` that is mapped from the model file, in bytes. */
  readonly mapped: number
}

/** node-llama-cpp allocates this many bytes per token to estimate a context. */
const bookkeepingBytes = 48
/** Largest context that node-llama-cpp can represent, in tokens. */
const maxTokens = 2 ** 31 - 1

/**
 * Estimates the memory for weights and for contexts of `parallel` sequences. Returns 0 for all fields if the
 * library cannot estimate this model.
 */
export async function estimateMemory(
  insights: GgufInsights,
  settings: LoadSettings,
  parallel: number,
  freeRam: number,
): Promise<MemoryEstimate> {
  const { contextSize, isPooling, gpuLayers, flashAttention, ggmlType, isOnGpu, adapterBytes } = settings
  const tokens = contextSize * parallel
  if (tokens > maxTokens) return { ram: Number.POSITIVE_INFINITY, vram: 0, mapped: 0 }
  if (tokens * bookkeepingBytes > freeRam) return { ram: tokens * bookkeepingBytes, vram: 0, mapped: 0 }
  try {
    const [weights, context] = await Promise.all([
      insights.estimateModelResourceRequirementsV2({ gpuLayers }),
      insights.estimateContextResourceRequirementsV2({
        contextSize,
        sequences: isPooling ? 1 : parallel,
        isEmbeddingContext: isPooling,
        batchSize: batchSizeOf(settings, parallel),
        modelGpuLayers: gpuLayers,
        flashAttention,
        kvCacheKeyType: ggmlType,
        kvCacheValueType: ggmlType,
      }),
    ])
    const contexts = isPooling ? parallel : 1
    const outputs = isPooling ? outputBytesOf(insights) : 0
    return {
      ram: weights.cpuRam + contexts * (context.cpuRam + outputs) + (isOnGpu ? 0 : adapterBytes),
      vram: weights.gpuVram + contexts * context.gpuVram + (isOnGpu ? adapterBytes : 0),
      mapped: weights.cpuRam,
    }
  } catch {
    return { ram: 0, vram: 0, mapped: 0 }
  }
}

/**
 * Memory for the outputs of a decode of short texts. llama.cpp reserves the logits of each token, also for a pooling
 * model, and node-llama-cpp counts its vector only. A longer text takes more while the context exists.
 */
function outputBytesOf({ ggufFileInfo: { metadata } }: GgufInsights): number {
  const vocabularySize = metadata.tokenizer?.ggml?.tokens?.length ?? 0
  return vocabularySize * Float32Array.BYTES_PER_ELEMENT * groupLimits.tokens
}
