/** Health of the local engine: the runtime folder, the cap of calls, and the processes of models. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import { raceAbort } from '../../util/abort.ts'
import type { EngineHealth } from '../engine-health.ts'
import { parseEmbedRequest, parseGenerateRequest, parseRerankRequest } from '../wire/parse-request.ts'
import { weightsKeyOf } from './identity.ts'
import {
  chooseModelSettings,
  type LocalModelSettings,
  resolveContextSize,
  resolveLoad,
} from './load-settings.ts'
import { scopeTenant } from './local-calls.ts'
import type { ModelEvent } from './model-events.ts'
import type { LoadedModels } from './supervisor/loaded-models.ts'
import type { ProcessClient } from './supervisor/process-client.ts'

/** How long a model counts as crashed after its process has ended, in ms. Then the next call may load it again. */
const crashedMs = 5_000
/** How long a decoded token proves that the model decodes, in ms. */
const provenMs = 5_000

/** The cached prompt of a probe belongs to no caller. */
const probeTenant = 'health'

export class LocalHealth implements EngineHealth {
  readonly #loaded: LoadedModels
  readonly #settings: LocalModelSettings
  readonly #isFull: () => boolean
  readonly #machineProblem: string | undefined
  readonly #isOnlyEngine: boolean
  /** When the process of a model has crashed, by the name of the model, on the clock of `performance.now()`. */
  readonly #crashes = new Map<string, number>()

  /**
   * @param isFull whether the engine admits no further call
   * @param machineProblem why no model can run on this machine, if so
   * @param isOnlyEngine whether the app has no models but those of this engine
   */
  constructor(
    loaded: LoadedModels,
    settings: LocalModelSettings,
    isFull: () => boolean,
    machineProblem: string | undefined,
    isOnlyEngine: boolean,
  ) {
    this.#loaded = loaded
    this.#settings = settings
    this.#isFull = isFull
    this.#machineProblem = machineProblem
    this.#isOnlyEngine = isOnlyEngine
  }

  onModelEvent({ type, model }: ModelEvent): void {
    if (type === 'cache-evict') return
    if (type === 'crash') this.#crashes.set(model, performance.now())
    else this.#crashes.delete(model)
  }

  async problem(): Promise<string | undefined> {
    if (this.#isOnlyEngine && this.#machineProblem !== undefined) return this.#machineProblem
    try {
      const file = join(this.#settings.runtimeDir.ensure(), `health-${process.pid}`)
      writeFileSync(file, 'ok', { mode: 0o600 })
      rmSync(file)
    } catch (error) {
      return `The runtime folder cannot be used: ${(error as Error).message}.`
    }
    return this.#isFull() ? 'As many calls as `local.maxCalls` allows are in the engine.' : undefined
  }

  async problemOf(model: Model, signal: AbortSignal): Promise<string | undefined> {
    if (this.#machineProblem !== undefined) return this.#machineProblem
    const process = this.#processOf(model)
    if (process)
      return (await isAnswering(process, signal))
        ? undefined
        : `The process of the model "${model.name}" does not answer.`
    const crashedAt = this.#crashes.get(model.name)
    if (crashedAt !== undefined && performance.now() - crashedAt < crashedMs)
      return `The process of the model "${model.name}" has just crashed.`
    this.#crashes.delete(model.name)
    return this.#rejectionOf(model)
  }

  async probe(model: Model, signal: AbortSignal): Promise<void> {
    const process = this.#processOf(model)
    if (!process || performance.now() - process.lastTokenAt < provenMs) return
    try {
      await this.#evaluate(process, model, signal)
      signal.throwIfAborted()
    } catch (error) {
      // A model that the app has released meanwhile needs no proof.
      const isReleased = process.hasEnded && !this.#crashes.has(model.name)
      if (!isReleased) throw error
    }
  }

  /** Uses the process directly: a call of the engine would extend the keep-alive. */
  async #evaluate(process: ProcessClient, model: Model, signal: AbortSignal): Promise<void> {
    const call = { signal, tenant: scopeTenant(probeTenant) }
    const { name } = model
    const task = process.footprint?.task
    if (task === 'embed')
      await process.request('embed', parseEmbedRequest({ model: name, inputs: ['Hi'] }), call, () => {})
    else if (task === 'rerank') {
      const request = parseRerankRequest({ model: name, query: 'Hi', documents: ['Hi'] })
      await process.request('rerank', request, call, () => {})
    } else if (task === 'generate') {
      const input = { kind: 'text', prompt: ['Hi'], template: false }
      const request = parseGenerateRequest({ model: name, input, maxTokens: 1 })
      await process.generate(request, call, () => {})
    }
  }

  /** The ready process of a model. */
  #processOf(model: Model): ProcessClient | undefined {
    const process = this.#loaded.get(weightsKeyOf(model))?.process
    return process?.footprint ? process : undefined
  }

  /** Why the engine would not load the model now. */
  #rejectionOf(model: Model): string | undefined {
    const contextSize = resolveContextSize({}, undefined, this.#settings)
    const modelSettings = chooseModelSettings(model, undefined, this.#settings)
    const { identity } = resolveLoad(model, {}, contextSize, this.#settings, modelSettings)
    try {
      this.#loaded.failures.check(identity.fingerprint, model.name)
      return undefined
    } catch (error) {
      return LlmError.from(error).message
    }
  }
}

async function isAnswering(process: ProcessClient, signal: AbortSignal): Promise<boolean> {
  try {
    await raceAbort(process.ping(), signal)
    return true
  } catch {
    return false
  }
}
