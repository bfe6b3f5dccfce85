/**
 * Runs the calls of the local engine. Each call counts against a cap, then waits until its model is loaded as it
 * needs it.
 */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { LlmError, modelNotFound } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import type { ModelStore } from '../../models/store.ts'
import type { EngineCall } from '../engine.ts'
import type { LoadOptions } from '../request.ts'
import { isContextDenied, nameDeniedContext } from './denied-context.ts'
import { weightsKeyOf } from './identity.ts'
import type { CallObserver, LoadedProcess, LoadedTask } from './loaded-process.ts'
import { CallCap } from './supervisor/call-cap.ts'
import type { LoadedModels } from './supervisor/loaded-models.ts'

export type ModelsOnDisk = Pick<ModelStore, 'get' | 'check' | 'details'>

/** The fields that all requests share. */
export interface LoadableRequest {
  readonly model: string
  readonly load?: LoadOptions
}

interface TaskInput {
  readonly loaded: LoadedProcess
  /** How long the call waited for the load. */
  readonly loadMs: number
  /** The call, with a tenant that is unique among all apps. */
  readonly call: EngineCall
  /** The context size that the caller asked for but may not choose. Set if the loaded context is smaller. */
  readonly deniedContextSize?: number
}

/** Runs on a loaded model. */
export type EngineTask<T> = (input: TaskInput) => Promise<T>

interface LocalCall<T> extends Partial<Pick<CallObserver, 'hasBegun'>> {
  readonly request: LoadableRequest
  readonly call: EngineCall
  /** Length of the prompt, in characters. */
  readonly size: number
  readonly task: EngineTask<T>
  /** Whether the call only uses the tokenizer. @default false */
  readonly isTokenizerOnly?: boolean
}

interface LocalCallLimits {
  readonly maxCalls: number
  readonly maxPromptCharacters: number
  readonly maxContextSize: number
}

export class LocalCalls {
  readonly #models: ModelsOnDisk
  readonly #loaded: LoadedModels
  readonly #callCap: CallCap
  /** Cap of the calls that only use the tokenizer, so that they cannot take the room of all others. */
  readonly #tokenizerCallCap: CallCap
  readonly #maxContextSize: number

  constructor(models: ModelsOnDisk, loaded: LoadedModels, limits: LocalCallLimits) {
    this.#models = models
    this.#loaded = loaded
    this.#callCap = new CallCap(limits)
    this.#tokenizerCallCap = new CallCap(limits)
    this.#maxContextSize = limits.maxContextSize
  }

  /** Whether so many calls are in the engine that further ones would be rejected. */
  get isFull(): boolean {
    return this.#callCap.isFull
  }

  /** Runs the task when the model is loaded. Resolves with `undefined` if the signal aborts first. */
  async run<T>({
    request,
    call,
    size,
    task,
    hasBegun = () => false,
    isTokenizerOnly = false,
  }: LocalCall<T>): Promise<T | undefined> {
    const { signal, tenant = '' } = call
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, signal)
    const { load = {} } = request
    const { contextSize = load.defaultContextSize ?? 0 } = load
    if (contextSize > this.#maxContextSize) throw contextTooLarge(contextSize, this.#maxContextSize)
    const model = call.model ?? (await this.#findModel(request.model, call.alias))
    const loadedTask = this.#toLoadedTask(task, call, model)
    const onLoadProgress = toLoadObserver(call)
    const cap = isTokenizerOnly ? this.#tokenizerCallCap : this.#callCap
    return cap.run(tenant, size, () =>
      this.#loaded.use(
        weightsKeyOf(model),
        signal,
        (localModel) => localModel.use(model, load, signal, loadedTask, { hasBegun, onLoadProgress }),
        call.background,
      ),
    )
  }

  async #findModel(name: string, alias: string | undefined): Promise<Model> {
    try {
      return await this.#models.get(name)
    } catch (cause) {
      throw LlmError.from(cause).code === 'not_found' ? modelNotFound(name, alias) : cause
    }
  }

  #toLoadedTask<T>(task: EngineTask<T>, call: EngineCall, model: Model): LoadedTask<T> {
    const { requestedContextSize } = call
    const scopedCall = { ...call, tenant: scopeTenant(call.tenant) }
    return async (loaded, loadMs) => {
      const input = { loaded, loadMs, call: scopedCall }
      if (requestedContextSize === undefined) return task(input)
      const isDenied = await isContextDenied(model, requestedContextSize, loaded, this.#models)
      if (!isDenied) return task(input)
      return task({ ...input, deniedContextSize: requestedContextSize }).catch((cause: unknown) => {
        throw nameDeniedContext(cause, requestedContextSize)
      })
    }
  }
}

/** Leaves out smaller numbers, which the process of a repeated call may report. */
function toLoadObserver({ onProgress }: EngineCall): CallObserver['onLoadProgress'] {
  if (!onProgress) return undefined
  let last = -1
  return (fraction) => {
    if (fraction <= last) return
    last = fraction
    onProgress({ phase: 'load', fraction })
  }
}

const contextTooLarge = (requested: number, max: number): LlmError =>
  new LlmError('invalid_request', `A context of ${requested} tokens exceeds the limit of ${max} tokens.`, {
    param: 'contextSize',
  })

/**
 * Adds an id of the app to the tenant, since apps share model processes but not cached prompts. All processes
 * that run the same script count as one app.
 */
export const scopeTenant = (tenant = ''): string => `${appId}/${tenant}`
const appId = createHash('sha256')
  .update(process.argv[1] ?? process.cwd())
  .digest('hex')
  .slice(0, 12)
