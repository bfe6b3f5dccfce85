/** How much of what is wanted there is memory for. Decided from a file's header, before its weights are read. */
import type { GgmlType, GgufInsights } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import { detectModelTask } from '../model-kind.ts'
import type { MemorySpace } from './machine-memory.ts'

/** In bytes: of the machine, and of a graphics card. */
export interface MemoryNeed {
  readonly ram: number
  readonly vram: number
}

/** How a model is going to be loaded, and what that takes. */
export interface LoadPlan {
  readonly contextSize: number
  readonly parallel: number
  /** So many tokens of prompts are read at once, at most. */
  readonly chunkSize: number
  readonly chunksAtOnce: number
  readonly batchSize: number
  readonly gpuLayers: number
  readonly flashAttention: boolean | 'auto'
  readonly kvCacheType: ProcessConfig['kvCacheType']
  /** Nothing where it cannot be told; then all is as it was wanted. */
  readonly need: MemoryNeed
  /** Of that, what is read from the file again when the machine has used its memory otherwise. */
  readonly mappedBytes: number
  /** What is not as it was wanted, for whoever runs the app. */
  readonly notes: readonly string[]
}

/** In the memory of the machine, which is for all. */
export interface MemoryBroker {
  /** Keeps so many bytes for this model, and makes room for them as far as it can. Asked again, it forgets what it kept. */
  readonly reserve: (bytes: number) => Promise<MemorySpace>
  /** Waits until there may be more room, and keeps nothing meanwhile. `false` where there is none in time. */
  readonly waitForMemory: () => Promise<boolean>
}

export interface MemoryEnvironment extends MemoryBroker {
  readonly vram: MemorySpace
  /** How many tokens are read in one step, at most: where all layers are on the processor, and else. */
  readonly chunkSizes: { readonly cpu: number; readonly gpu: number }
  readonly cacheTypes: Readonly<Record<ProcessConfig['kvCacheType'], GgmlType>>
}

/** For more than one answer at a time no more than this is taken of what is free: others live here, too. */
const usableShare = 0.8
/** So long, about, until somebody else may have let go of some. */
const retryAfterMs = 10_000
/** The library keeps so many bytes of books for a token, and counts no further. */
const bookkeepingBytes = 48
const maxTokens = 2 ** 31 - 1
/** Values of a quantized cache are in blocks of so many. */
const blockSize = 32

/**
 * Fewer answers or texts side by side where there is no memory for all; never a smaller context. Where not even one has
 * room it waits for others that have it. Throws `overloaded` when that was in vain, and `invalid_request` where there
 * never is room.
 */
export async function planMemory(
  config: ProcessConfig,
  insights: GgufInsights,
  { reserve, waitForMemory, vram, chunkSizes, cacheTypes }: MemoryEnvironment,
): Promise<LoadPlan> {
  const contextSize = Math.min(config.contextSize, insights.trainContextSize || config.contextSize)
  const flashAttention = insights.flashAttentionSupported && (config.flashAttention ?? 'auto')
  const isPooling = detectModelTask(insights) !== 'generate'
  const kvCacheType = !isPooling && canQuantize(insights) ? config.kvCacheType : 'f16'
  const cacheType = cacheTypes[kvCacheType]
  const gpuLayers = await resolveGpuLayers(config, insights, contextSize, flashAttention, cacheType)
  const isOnGpu = gpuLayers > 0 && vram.total > 0
  const chunkSize = Math.min(isOnGpu ? chunkSizes.gpu : chunkSizes.cpu, contextSize)
  // Kernels of graphics cards are chosen by the number of rows, and not all of them add up in the same order.
  const chunksAtOnce = isOnGpu ? 1 : 2
  // Texts are read whole, by contexts of one thread each; a card is fed by one.
  const wantedParallel = !isPooling ? config.parallel : isOnGpu ? 1 : config.threads
  const batchSize = (parallel: number): number =>
    isPooling ? contextSize : Math.max(parallel, chunkSize * chunksAtOnce)
  const adapterBytes = (config.adapters ?? []).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  let ram = await reserve(0)
  let mappedBytes = 0

  const needFor = async (parallel: number): Promise<MemoryNeed> => {
    const tokens = contextSize * parallel
    if (tokens > maxTokens) return { ram: Number.POSITIVE_INFINITY, vram: 0 }
    // To measure a context the library makes its books.
    if (tokens * bookkeepingBytes > ram.free) return { ram: tokens * bookkeepingBytes, vram: 0 }
    try {
      const [weights, context] = await Promise.all([
        insights.estimateModelResourceRequirementsV2({ gpuLayers }),
        insights.estimateContextResourceRequirementsV2({
          contextSize,
          sequences: isPooling ? 1 : parallel,
          isEmbeddingContext: isPooling,
          batchSize: batchSize(parallel),
          modelGpuLayers: gpuLayers,
          flashAttention,
          kvCacheKeyType: cacheType,
          kvCacheValueType: cacheType,
        }),
      ])
      mappedBytes = weights.cpuRam
      const contexts = isPooling ? parallel : 1
      return {
        ram: weights.cpuRam + contexts * context.cpuRam + (isOnGpu ? 0 : adapterBytes),
        vram: weights.gpuVram + contexts * context.gpuVram + (isOnGpu ? adapterBytes : 0),
      }
    } catch {
      return { ram: 0, vram: 0 }
    }
  }
  const canFit = async (parallel: number): Promise<boolean> => {
    const need = await needFor(parallel)
    const fraction = parallel > 1 ? usableShare : 1
    return need.ram <= ram.free * fraction && need.vram <= vram.free * fraction
  }

  /** Idle models go for what all would take, else for what one takes; not for what there can never be. */
  const makeRoom = async (): Promise<number> => {
    for (const bytes of [(await needFor(wantedParallel)).ram / usableShare, (await needFor(1)).ram])
      if (bytes > ram.free && bytes <= ram.total) ram = await reserve(bytes)
    return findGreatest(wantedParallel, canFit)
  }
  let parallel = (await canFit(wantedParallel)) ? wantedParallel : await makeRoom()
  while (parallel === 0) {
    const single = await needFor(1)
    const mayFit = single.ram > ram.free && single.ram <= ram.total
    if (!mayFit || !(await waitForMemory())) throw modelTooLarge(config, contextSize, single, ram, vram)
    parallel = await makeRoom()
  }
  const need = await needFor(parallel)
  await reserve(need.ram)
  const chosen = { contextSize, parallel, kvCacheType }
  return {
    ...chosen,
    chunkSize,
    chunksAtOnce,
    batchSize: batchSize(parallel),
    gpuLayers,
    flashAttention,
    need,
    mappedBytes,
    notes: isPooling ? [] : describeDifferences(config, chosen),
  }
}

function describeDifferences(
  { modelName, kvCacheType, parallel }: ProcessConfig,
  chosen: Pick<LoadPlan, 'contextSize' | 'kvCacheType' | 'parallel'>,
): string[] {
  const notes: string[] = []
  if (chosen.kvCacheType !== kvCacheType)
    notes.push(`The model "${modelName}" cannot have a context in ${kvCacheType}, and gets one in f16.`)
  if (chosen.parallel < parallel)
    notes.push(
      `The model "${modelName}" makes ${chosen.parallel} answers side by side, and not ${parallel}: there is no memory for more contexts of ${chosen.contextSize} tokens.`,
    )
  return notes
}

/** Only flash attention reads a quantized cache, in whole blocks. */
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

/** As many as fit is none where nothing fits; a number that does not fit is the library's error. */
async function resolveGpuLayers(
  { gpuLayers, parallel }: ProcessConfig,
  { configurationResolver }: GgufInsights,
  contextSize: number,
  flashAttention: boolean | 'auto',
  cacheType: GgmlType,
): Promise<number> {
  const wanted = gpuLayers === 'auto' ? { fitContext: { contextSize: contextSize * parallel } } : gpuLayers
  const resolved = configurationResolver.resolveModelGpuLayersV2(wanted, {
    defaultContextFlashAttention: flashAttention,
    defaultContextKvCacheKeyType: cacheType,
    defaultContextKvCacheValueType: cacheType,
  })
  if (gpuLayers !== 'auto') return (await resolved).gpuLayers
  return resolved.then(
    (found) => found.gpuLayers,
    () => 0,
  )
}

/** The greatest number up to `wanted` that fits; 0 where 1 does not. */
async function findGreatest(wanted: number, fits: (count: number) => Promise<boolean>): Promise<number> {
  if (await fits(wanted)) return wanted
  let fitting = 0
  for (let tooMany = wanted; tooMany - fitting > 1; ) {
    const middle = Math.floor((fitting + tooMany) / 2)
    if (await fits(middle)) fitting = middle
    else tooMany = middle
  }
  return fitting
}

function modelTooLarge(
  { modelName }: ProcessConfig,
  contextSize: number,
  need: MemoryNeed,
  ram: MemorySpace,
  vram: MemorySpace,
): LlmError {
  const isOnGpu = need.ram <= ram.free
  const [bytes, { free, total }] = isOnGpu ? [need.vram, vram] : [need.ram, ram]
  const kind = isOnGpu ? "a graphics card's memory" : 'memory'
  const needs = `The model "${modelName}" with a context of ${contextSize} tokens needs at least ${formatGb(bytes)} of ${kind}`
  return bytes > total
    ? new LlmError('invalid_request', `${needs}, and this machine has ${formatGb(total)}.`, {
        param: 'model',
      })
    : new LlmError('overloaded', `${needs}, and ${formatGb(free)} are free now.`, { retryAfterMs })
}

const formatGb = (bytes: number): string => `${Number((bytes / 1e9).toPrecision(2))} GB`
