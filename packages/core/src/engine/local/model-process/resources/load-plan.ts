/**
 * Fits the load settings of a model into memory. Needs only the header of the model file, before the weights
 * are read.
 */
import type { GgufInsights } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { formatGb } from './gpu-placement.ts'
import { batchSizeOf, type LoadSettings, type LoadTarget, resolveLoadSettings } from './load-settings.ts'
import type { MachineMemory, MemorySpace, VramReader } from './machine-memory.ts'
import {
  estimateMemory,
  type MemoryEstimate,
  type MemoryNeed,
  type MemoryRequest,
} from './memory-estimate.ts'

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
  /** Memory of graphics cards when the layers were chosen. */
  readonly vram: MemorySpace
  /** Settings that could not be met, for the app's log. */
  readonly notes: readonly string[]
}

/** Manages memory, which all model processes of the machine share. */
export interface MemoryBroker {
  /**
   * Reserves memory for this model and replaces its earlier reservation. If too little is free, frees memory
   * as far as possible. Reserves nothing if that is not enough.
   */
  readonly reserve: (need: MemoryRequest, readVram: VramReader) => Promise<MachineMemory>
  /**
   * Drops the reservation and waits until more memory may be free. Returns `false` if none was freed in time.
   */
  readonly waitForMemory: () => Promise<boolean>
  /** Like `waitForMemory`, but waits only for loads of other models on the graphics cards. */
  readonly waitForVramLoads: () => Promise<boolean>
}

export interface MemoryEnvironment extends MemoryBroker, LoadTarget {
  readonly readVram: VramReader
}

/** Share of the free memory that a model with several sequences may use. The rest is for other programs. */
const usableShare = 0.8
/** Time after which clients should retry, since other processes may have freed memory by then. */
const retryAfterMs = 10_000
/** How often a plan may fail because another program has taken the memory since it was measured. */
const maxLostPlans = 5
const noNeed: MemoryNeed = { ram: 0, vram: 0 }

/**
 * Plans fewer sequences if memory is short, but never a smaller context. With `gpuLayers: 'auto'`, plans fewer
 * layers on graphics cards. Waits for busy processes if not even one sequence fits. Throws an `LlmError`:
 * `overloaded` when the wait times out, `invalid_request` if the machine is too small.
 */
export async function planMemory(
  config: ProcessConfig,
  insights: GgufInsights,
  environment: MemoryEnvironment,
): Promise<LoadPlan> {
  const { settings, parallel, estimate, vram } = await new MemoryPlanner(config, insights, environment).plan()
  const { contextSize, chunkSize, chunksAtOnce, gpuLayers, flashAttention, kvCacheType } = settings
  const { mapped, ...need } = estimate
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
    vram,
    notes: settings.isPooling ? [] : describeDifferences(config, chosen),
  }
}

/** A choice of settings whose memory is reserved. */
interface ReservedFit {
  readonly settings: LoadSettings
  readonly parallel: number
  readonly estimate: MemoryEstimate
  readonly vram: MemorySpace
}

/** Finds the number of layers on graphics cards and of sequences that memory has room for. */
class MemoryPlanner {
  readonly #config: ProcessConfig
  readonly #insights: GgufInsights
  readonly #environment: MemoryEnvironment
  /** Memory at the last reservation. */
  #memory: MachineMemory = { ram: { free: 0, total: 0 }, vram: { free: 0, total: 0 } }

  constructor(config: ProcessConfig, insights: GgufInsights, environment: MemoryEnvironment) {
    this.#config = config
    this.#insights = insights
    this.#environment = environment
  }

  async plan(): Promise<ReservedFit> {
    for (let lost = 0; ; lost++) {
      const { settings, parallel, vram } = await this.#choose()
      const estimate = await this.#estimate(settings, parallel)
      await this.#reserve(estimate)
      if (!this.#isShort(estimate)) return { settings, parallel, estimate, vram }
      if (lost === maxLostPlans) throw this.#modelTooLarge(settings, estimate)
    }
  }

  /** Chooses settings that fit into memory. Waits for busy processes if not even one sequence fits. */
  async #choose(): Promise<Omit<ReservedFit, 'estimate'>> {
    for (;;) {
      await this.#reserve(noNeed)
      const layers = await this.#chooseLayers()
      const { vram } = this.#memory
      const settings = await this.#resolveSettings(layers)
      const parallel = await this.#findParallel(settings)
      if (parallel > 0) return { settings, parallel, vram }
      if (!(await this.#waitForMemory(settings)))
        throw this.#modelTooLarge(settings, await this.#estimate(settings, 1))
    }
  }

  /** Returns `max` for `auto` if all layers fit on the graphics cards. They come before all wanted sequences. */
  async #chooseLayers(): Promise<ProcessConfig['gpuLayers']> {
    const { gpuLayers } = this.#config
    if (gpuLayers !== 'auto' || this.#memory.vram.total === 0) return gpuLayers
    const settings = await this.#resolveSettings('max')
    const { vram } = await this.#estimate(settings, 1)
    // The library cannot estimate this model.
    if (vram === 0) return gpuLayers
    await this.#makeVramRoom(settings)
    return vram <= this.#memory.vram.free ? 'max' : gpuLayers
  }

  /**
   * Tries to free memory of graphics cards for all layers, with all wanted sequences or at least one, else for some
   * layers. Waits for other loads, since they may end with less memory than they have reserved. Does not wait for
   * busy models.
   */
  async #makeVramRoom(settings: LoadSettings): Promise<void> {
    const { total } = this.#memory.vram
    const wanted = (await this.#estimate(settings, settings.wantedParallel)).vram / usableShare
    const single = (await this.#estimate(settings, 1)).vram
    const requests: readonly MemoryRequest[] = [
      ...(wanted <= total ? [{ ram: 0, vram: wanted }] : []),
      { ram: 0, vram: Math.min(single, total), acceptsLessVram: true },
    ]
    for (;;) {
      for (const one of requests) if (one.vram > this.#memory.vram.free) await this.#reserve(one)
      if (single <= this.#memory.vram.free || !(await this.#environment.waitForVramLoads())) return
      await this.#reserve(noNeed)
    }
  }

  /** Returns the number of sequences that fit, or 0. */
  async #findParallel(settings: LoadSettings): Promise<number> {
    const { wantedParallel } = settings
    if (await this.#canFit(settings, wantedParallel)) return wantedParallel
    await this.#makeRoom(settings)
    return findGreatest(wantedParallel, (parallel) => this.#canFit(settings, parallel))
  }

  /**
   * Tries to free memory for all wanted sequences, then at least for one. Does not try to free more than the
   * machine has.
   */
  async #makeRoom(settings: LoadSettings): Promise<void> {
    const { ram, vram } = await this.#estimate(settings, settings.wantedParallel)
    const wanted = { ram: ram / usableShare, vram: vram / usableShare }
    for (const need of [wanted, await this.#estimate(settings, 1)])
      if (this.#isShort(need) && this.#canEverFit(need)) await this.#reserve(need)
  }

  /** Returns `false` if the model is too large for this machine, or if no memory was freed in time. */
  async #waitForMemory(settings: LoadSettings): Promise<boolean> {
    const single = await this.#estimate(settings, 1)
    return this.#isShort(single) && this.#canEverFit(single) && (await this.#environment.waitForMemory())
  }

  async #canFit(settings: LoadSettings, parallel: number): Promise<boolean> {
    const { ram, vram } = await this.#estimate(settings, parallel)
    const share = parallel > 1 ? usableShare : 1
    return ram <= this.#memory.ram.free * share && vram <= this.#memory.vram.free * share
  }

  #isShort({ ram, vram }: MemoryNeed): boolean {
    return ram > this.#memory.ram.free || vram > this.#memory.vram.free
  }

  /** Whether the machine has this memory when no other program uses it. */
  #canEverFit({ ram, vram }: MemoryNeed): boolean {
    return ram <= this.#memory.ram.total && vram <= this.#memory.vram.total
  }

  async #reserve({ ram, vram, acceptsLessVram }: MemoryRequest): Promise<void> {
    const request = { ram, vram, ...(acceptsLessVram && { acceptsLessVram }) }
    this.#memory = await this.#environment.reserve(request, this.#environment.readVram)
  }

  #resolveSettings(layers: ProcessConfig['gpuLayers']): Promise<LoadSettings> {
    return resolveLoadSettings(this.#config, this.#insights, this.#environment, this.#memory.vram, layers)
  }

  #estimate(settings: LoadSettings, parallel: number): Promise<MemoryEstimate> {
    return estimateMemory(this.#insights, settings, parallel, this.#memory.ram.free)
  }

  #modelTooLarge({ contextSize }: LoadSettings, need: MemoryNeed): LlmError {
    const isVramShort = need.ram <= this.#memory.ram.free
    const kind = isVramShort ? "a graphics card's memory" : 'memory'
    const bytes = isVramShort ? need.vram : need.ram
    const { free, total } = isVramShort ? this.#memory.vram : this.#memory.ram
    const needs = `The model "${this.#config.modelName}" with a context of ${contextSize} tokens needs at least ${formatGb(bytes)} of ${kind}`
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
