/** How much of what is wanted there is memory for. Decided from a file's header, before its weights are read. */
import type { GgmlType, GgufInsights } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import { purposeOf } from '../model-kind.ts'
import type { Space } from './machine-memory.ts'

/** In bytes: of the machine, and of a graphics card. */
export interface Need {
  readonly ram: number
  readonly vram: number
}

/** How a model is going to be loaded, and what that takes. */
export interface Plan {
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
  readonly need: Need
  /** Of that, what is read from the file again when the machine has used its memory otherwise. */
  readonly mappedBytes: number
  /** What is not as it was wanted, for whoever runs the app. */
  readonly notes: readonly string[]
}

/** In the memory of the machine, which is for all. */
export interface Room {
  /** Keeps so many bytes for this model, and makes room for them as far as it can. Asked again, it forgets what it kept. */
  readonly roomFor: (bytes: number) => Promise<Space>
  /** Waits until there may be more room, and keeps nothing meanwhile. `false` where there is none in time. */
  readonly waitForRoom: () => Promise<boolean>
}

export interface Surroundings extends Room {
  readonly vram: Space
  /** How many tokens are read in one step, at most: where all layers are on the processor, and else. */
  readonly chunkSizes: { readonly cpu: number; readonly gpu: number }
  readonly cacheTypes: Readonly<Record<ProcessConfig['kvCacheType'], GgmlType>>
}

/** For more than one answer at a time no more than this is taken of what is free: others live here, too. */
const share = 0.8
/** So long, about, until somebody else may have let go of some. */
const retryAfterMs = 10_000
/** The library keeps so many bytes of books for a token, and counts no further. */
const bookBytes = 48
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
  { roomFor, waitForRoom, vram, chunkSizes, cacheTypes }: Surroundings,
): Promise<Plan> {
  const contextSize = Math.min(config.contextSize, insights.trainContextSize || config.contextSize)
  const flashAttention = insights.flashAttentionSupported && (config.flashAttention ?? 'auto')
  const reads = purposeOf(insights) !== 'text'
  const kvCacheType = !reads && canQuantize(insights) ? config.kvCacheType : 'f16'
  const cacheType = cacheTypes[kvCacheType]
  const gpuLayers = await layersFor(config, insights, contextSize, flashAttention, cacheType)
  const onCard = gpuLayers > 0 && vram.total > 0
  const chunkSize = Math.min(onCard ? chunkSizes.gpu : chunkSizes.cpu, contextSize)
  // Kernels of graphics cards are chosen by the number of rows, and not all of them add up in the same order.
  const chunksAtOnce = onCard ? 1 : 2
  // Texts are read whole, by contexts of one thread each; a card is fed by one.
  const wanted = !reads ? config.parallel : onCard ? 1 : config.threads
  const batchSize = (parallel: number): number =>
    reads ? contextSize : Math.max(parallel, chunkSize * chunksAtOnce)
  const adapterBytes = (config.adapters ?? []).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  let ram = await roomFor(0)
  let mappedBytes = 0

  const needFor = async (parallel: number): Promise<Need> => {
    const tokens = contextSize * parallel
    if (tokens > maxTokens) return { ram: Number.POSITIVE_INFINITY, vram: 0 }
    // To measure a context the library makes its books.
    if (tokens * bookBytes > ram.free) return { ram: tokens * bookBytes, vram: 0 }
    try {
      const [weights, context] = await Promise.all([
        insights.estimateModelResourceRequirementsV2({ gpuLayers }),
        insights.estimateContextResourceRequirementsV2({
          contextSize,
          sequences: reads ? 1 : parallel,
          isEmbeddingContext: reads,
          batchSize: batchSize(parallel),
          modelGpuLayers: gpuLayers,
          flashAttention,
          kvCacheKeyType: cacheType,
          kvCacheValueType: cacheType,
        }),
      ])
      mappedBytes = weights.cpuRam
      const contexts = reads ? parallel : 1
      return {
        ram: weights.cpuRam + contexts * context.cpuRam + (onCard ? 0 : adapterBytes),
        vram: weights.gpuVram + contexts * context.gpuVram + (onCard ? adapterBytes : 0),
      }
    } catch {
      return { ram: 0, vram: 0 }
    }
  }
  const fits = async (parallel: number): Promise<boolean> => {
    const need = await needFor(parallel)
    const part = parallel > 1 ? share : 1
    return need.ram <= ram.free * part && need.vram <= vram.free * part
  }

  /** Idle models go for what all would take, else for what one takes; not for what there can never be. */
  const makeRoom = async (): Promise<number> => {
    for (const bytes of [(await needFor(wanted)).ram / share, (await needFor(1)).ram])
      if (bytes > ram.free && bytes <= ram.total) ram = await roomFor(bytes)
    return most(wanted, fits)
  }
  let parallel = (await fits(wanted)) ? wanted : await makeRoom()
  while (parallel === 0) {
    const one = await needFor(1)
    const mayFit = one.ram > ram.free && one.ram <= ram.total
    if (!mayFit || !(await waitForRoom())) throw tooLarge(config, contextSize, one, ram, vram)
    parallel = await makeRoom()
  }
  const need = await needFor(parallel)
  await roomFor(need.ram)
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
    notes: reads ? [] : differences(config, chosen),
  }
}

function differences(
  { modelName, kvCacheType, parallel }: ProcessConfig,
  chosen: Pick<Plan, 'contextSize' | 'kvCacheType' | 'parallel'>,
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
  const size = heads && width / heads
  const { key_length = size, value_length = size } = attention ?? {}
  return flashAttentionSupported && key_length % blockSize === 0 && value_length % blockSize === 0
}

/** As many as fit is none where nothing fits; a number that does not fit is the library's error. */
async function layersFor(
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
async function most(wanted: number, fits: (count: number) => Promise<boolean>): Promise<number> {
  if (await fits(wanted)) return wanted
  let fitting = 0
  for (let tooMany = wanted; tooMany - fitting > 1; ) {
    const middle = Math.floor((fitting + tooMany) / 2)
    if (await fits(middle)) fitting = middle
    else tooMany = middle
  }
  return fitting
}

function tooLarge(
  { modelName }: ProcessConfig,
  contextSize: number,
  need: Need,
  ram: Space,
  vram: Space,
): LlmError {
  const onCard = need.ram <= ram.free
  const [bytes, { free, total }] = onCard ? [need.vram, vram] : [need.ram, ram]
  const kind = onCard ? "a graphics card's memory" : 'memory'
  const needs = `The model "${modelName}" with a context of ${contextSize} tokens needs at least ${gb(bytes)} of ${kind}`
  return bytes > total
    ? new LlmError('invalid_request', `${needs}, and this machine has ${gb(total)}.`, { param: 'model' })
    : new LlmError('overloaded', `${needs}, and ${gb(free)} are free now.`, { retryAfterMs })
}

const gb = (bytes: number): string => `${Number((bytes / 1e9).toPrecision(2))} GB`
