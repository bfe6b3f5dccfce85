import type { GgmlType, GgufInsights } from 'node-llama-cpp'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { detectModelTask } from '../model-kind.ts'
import type { GroupLimits } from '../pooling.ts'
import type { MemorySpace } from './machine-memory.ts'

/** Settings for loading a model, before the number of sequences is decided. */
export interface LoadSettings {
  readonly contextSize: number
  readonly isPooling: boolean
  readonly flashAttention: boolean | 'auto'
  readonly kvCacheType: ProcessConfig['kvCacheType']
  /** `kvCacheType` as a type of node-llama-cpp. */
  readonly ggmlType: GgmlType
  readonly gpuLayers: number
  readonly isOnGpu: boolean
  /** Maximum number of prompt tokens in one chunk. */
  readonly chunkSize: number
  readonly chunksAtOnce: number
  readonly wantedParallel: number
  readonly adapterBytes: number
}

export interface LoadTarget {
  /** Largest chunk size: with all layers on the CPU, and with layers on a GPU. */
  readonly chunkSizes: { readonly cpu: number; readonly gpu: number }
  readonly cacheTypes: Readonly<Record<ProcessConfig['kvCacheType'], GgmlType>>
}

/** Block length of quantized data types, in values. */
const blockSize = 32

/**
 * @param vram memory of the graphics cards that this model may use
 * @param wantedLayers replaces `gpuLayers` of the config
 */
export async function resolveLoadSettings(
  config: ProcessConfig,
  insights: GgufInsights,
  { chunkSizes, cacheTypes }: LoadTarget,
  vram: MemorySpace,
  wantedLayers: ProcessConfig['gpuLayers'],
): Promise<LoadSettings> {
  const contextSize = Math.min(config.contextSize, insights.trainContextSize || config.contextSize)
  const flashAttention = insights.flashAttentionSupported && (config.flashAttention ?? 'auto')
  const isPooling = detectModelTask(insights) !== 'generate'
  const kvCacheType = !isPooling && canQuantize(insights) ? config.kvCacheType : 'f16'
  const ggmlType = cacheTypes[kvCacheType]
  const gpuLayers =
    wantedLayers === 'auto'
      ? await fitGpuLayers(config, insights, vram, { contextSize, flashAttention, ggmlType })
      : countGpuLayers(wantedLayers, insights, vram)
  const isOnGpu = gpuLayers > 0
  return {
    contextSize,
    isPooling,
    flashAttention,
    kvCacheType,
    ggmlType,
    gpuLayers,
    isOnGpu,
    chunkSize: Math.min(isOnGpu ? chunkSizes.gpu : chunkSizes.cpu, contextSize),
    // GPU kernels are chosen by the number of rows, and not all of them sum in the same order.
    chunksAtOnce: isOnGpu ? 1 : 2,
    // Each context of a pooling model runs one thread on the CPU. One context keeps a GPU busy.
    wantedParallel: !isPooling ? config.parallel : isOnGpu ? 1 : config.threads,
    adapterBytes: (config.adapters ?? []).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

/**
 * Texts that a pooling model evaluates in one decode. More tokens are not faster, and the output buffer grows with them.
 * A cancelled call waits for the end of a decode.
 */
export const groupLimits: GroupLimits = { tokens: 128, texts: 64 }

/** Pooling models evaluate a whole text in one batch, or several short ones. */
export const batchSizeOf = (
  { isPooling, contextSize, chunkSize, chunksAtOnce }: LoadSettings,
  parallel: number,
): number =>
  isPooling ? Math.max(contextSize, groupLimits.tokens) : Math.max(parallel, chunkSize * chunksAtOnce)

/**
 * A quantized KV cache needs flash attention, and key and value lengths that are multiples of the block
 * length.
 */
function canQuantize({
  flashAttentionSupported,
  ggufFileInfo: { architectureMetadata },
}: GgufInsights): boolean {
  const { attention, embedding_length: width = 0 } = architectureMetadata
  const heads = Number(attention?.head_count ?? 0)
  const headSize = heads && width / heads
  const { key_length = headSize, value_length = headSize } = attention ?? {}
  return flashAttentionSupported && key_length % blockSize === 0 && value_length % blockSize === 0
}

/** Number of layers that the settings ask for. `auto` asks for all of them. */
export function countGpuLayers(
  wanted: ProcessConfig['gpuLayers'],
  { totalLayers }: Pick<GgufInsights, 'totalLayers'>,
  vram: MemorySpace,
): number {
  if (vram.total === 0) return 0
  return typeof wanted === 'number' ? Math.min(wanted, totalLayers) : totalLayers
}

/** Returns the number of layers that fit on the graphics cards, or 0. */
async function fitGpuLayers(
  { parallel }: ProcessConfig,
  { configurationResolver }: GgufInsights,
  vram: MemorySpace,
  {
    contextSize,
    flashAttention,
    ggmlType,
  }: Pick<LoadSettings, 'contextSize' | 'flashAttention' | 'ggmlType'>,
): Promise<number> {
  if (vram.total === 0) return 0
  try {
    const { gpuLayers } = await configurationResolver.resolveModelGpuLayersV2(
      { fitContext: { contextSize: contextSize * parallel } },
      {
        getVramState: async () => vram,
        defaultContextFlashAttention: flashAttention,
        defaultContextKvCacheKeyType: ggmlType,
        defaultContextKvCacheValueType: ggmlType,
      },
    )
    return gpuLayers
  } catch {
    return 0
  }
}
