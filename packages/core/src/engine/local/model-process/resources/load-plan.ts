/**
 * Fits the load settings of a model into memory. Needs only the header of the model file, before the weights
 * are read.
 */
import type { GgufInsights } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { batchSizeOf, type LoadSettings, type LoadTarget, resolveLoadSettings } from './load-settings.ts'
import type { MemorySpace } from './machine-memory.ts'
import { estimateMemory, type MemoryNeed } from './memory-estimate.ts'

export interface LoadPlan
  extends Pick<
    LoadSettings,
    'contextSize' | 'chunkSize' | 'chunksAtOnce' | 'gpuLayers' | 'flashAttention' | 'kvCacheType'
  > {
  readonly parallel: number
  readonly batchSize: number
  /**
   * Estimated memory. All 0 if the library cannot estimate it. The settings are then used without a check.
   */
  readonly need: MemoryNeed
  /**
   * Part of `need.ram` that is mapped from the model file, in bytes. The system may drop it and read it
   * again.
   */
  readonly mappedBytes: number
  /** Settings that could not be met, for the app's log. */
  readonly notes: readonly string[]
}

/** Manages RAM, which all model processes of the machine share. */
export interface MemoryBroker {
  /**
   * Reserves bytes for this model and replaces its earlier reservation. If too little is free, frees memory
   * as far as possible.
   */
  readonly reserve: (bytes: number) => Promise<MemorySpace>
  /**
   * Drops the reservation and waits until more memory may be free. Returns `false` if none was freed in time.
   */
  readonly waitForMemory: () => Promise<boolean>
}

export interface MemoryEnvironment extends MemoryBroker, LoadTarget {}

/** Share of the free memory that a model with several sequences may use. The rest is for other programs. */
const usableShare = 0.8
/** Time after which clients should retry, since other processes may have freed memory by then. */
const retryAfterMs = 10_000

/**
 * Plans fewer sequences if memory is short, but never a smaller context. Waits for busy processes if not even
 * one sequence fits. Throws an `LlmError`: `overloaded` when the wait times out, `invalid_request` if the
 * machine is too small.
 */
export async function planMemory(
  config: ProcessConfig,
  insights: GgufInsights,
  environment: MemoryEnvironment,
): Promise<LoadPlan> {
  const settings = await resolveLoadSettings(config, insights, environment)
  const fit = new ParallelFit(config.modelName, insights, settings, environment)
  const parallel = await fit.findParallel()
  const { mapped, ...need } = await fit.estimate(parallel)
  await environment.reserve(need.ram)
  const { contextSize, chunkSize, chunksAtOnce, gpuLayers, flashAttention, kvCacheType } = settings
  const chosen = { contextSize, parallel, kvCacheType }
  return {
    ...chosen,
    chunkSize,
    chunksAtOnce,
    batchSize: batchSizeOf(settings, parallel),
    gpuLayers,
    flashAttention,
    need,
    mappedBytes: mapped,
    notes: settings.isPooling ? [] : describeDifferences(config, chosen),
  }
}

/** Finds the number of sequences that memory has room for. */
class ParallelFit {
  readonly #modelName: string
  readonly #insights: GgufInsights
  readonly #settings: LoadSettings
  readonly #environment: MemoryEnvironment
  #ram: MemorySpace = { free: 0, total: 0 }

  constructor(
    modelName: string,
    insights: GgufInsights,
    settings: LoadSettings,
    environment: MemoryEnvironment,
  ) {
    this.#modelName = modelName
    this.#insights = insights
    this.#settings = settings
    this.#environment = environment
  }

  async findParallel(): Promise<number> {
    const { wantedParallel } = this.#settings
    this.#ram = await this.#environment.reserve(0)
    if (await this.#canFit(wantedParallel)) return wantedParallel
    for (;;) {
      const parallel = await this.#makeRoom()
      if (parallel > 0) return parallel
      const single = await this.estimate(1)
      const mayFit = single.ram > this.#ram.free && single.ram <= this.#ram.total
      if (!mayFit || !(await this.#environment.waitForMemory())) throw this.#modelTooLarge(single)
    }
  }

  estimate(parallel: number): ReturnType<typeof estimateMemory> {
    return estimateMemory(this.#insights, this.#settings, parallel, this.#ram.free)
  }

  /**
   * Tries to free memory for all wanted sequences, then at least for one. Does not try to free more than the
   * machine has. Returns the number of sequences that fit.
   */
  async #makeRoom(): Promise<number> {
    const { wantedParallel } = this.#settings
    const needs = [(await this.estimate(wantedParallel)).ram / usableShare, (await this.estimate(1)).ram]
    for (const bytes of needs)
      if (bytes > this.#ram.free && bytes <= this.#ram.total)
        this.#ram = await this.#environment.reserve(bytes)
    return findGreatest(wantedParallel, (parallel) => this.#canFit(parallel))
  }

  async #canFit(parallel: number): Promise<boolean> {
    const need = await this.estimate(parallel)
    const share = parallel > 1 ? usableShare : 1
    return need.ram <= this.#ram.free * share && need.vram <= this.#environment.vram.free * share
  }

  #modelTooLarge(need: MemoryNeed): LlmError {
    const isVramShort = need.ram <= this.#ram.free
    const [bytes, { free, total }] = isVramShort ? [need.vram, this.#environment.vram] : [need.ram, this.#ram]
    const kind = isVramShort ? "a graphics card's memory" : 'memory'
    const needs = `The model "${this.#modelName}" with a context of ${this.#settings.contextSize} tokens needs at least ${formatGb(bytes)} of ${kind}`
    return bytes > total
      ? new LlmError('invalid_request', `${needs}, and this machine has ${formatGb(total)}.`, {
          param: 'model',
        })
      : new LlmError('overloaded', `${needs}, and ${formatGb(free)} are free now.`, { retryAfterMs })
  }
}

function describeDifferences(
  { modelName, kvCacheType, parallel }: ProcessConfig,
  chosen: Pick<LoadPlan, 'contextSize' | 'kvCacheType' | 'parallel'>,
): string[] {
  const notes: string[] = []
  if (chosen.kvCacheType !== kvCacheType)
    notes.push(`The model "${modelName}" does not support a KV cache in ${kvCacheType}; it is f16.`)
  if (chosen.parallel < parallel)
    notes.push(
      `The model "${modelName}" runs ${chosen.parallel} sequences in parallel instead of ${parallel}: there is no memory for more contexts of ${chosen.contextSize} tokens.`,
    )
  return notes
}

/** Finds the greatest number up to `wanted` that fits. Returns 0 if not even 1 fits. */
async function findGreatest(wanted: number, canFit: (count: number) => Promise<boolean>): Promise<number> {
  if (await canFit(wanted)) return wanted
  let fitting = 0
  for (let tooMany = wanted; tooMany - fitting > 1; ) {
    const middle = Math.floor((fitting + tooMany) / 2)
    if (await canFit(middle)) fitting = middle
    else tooMany = middle
  }
  return fitting
}

const formatGb = (bytes: number): string => `${Number((bytes / 1e9).toPrecision(2))} GB`
