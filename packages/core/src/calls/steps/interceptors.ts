/** Runs the interceptors of the host app. A request that they change is authorised again. */
import type { Caller } from '../../accounts/auth/caller.ts'
import type { GenerateEvent } from '../../engine/events.ts'
import { LlmError } from '../../errors.ts'
import { raceAbort } from '../../util/abort.ts'
import { deepFreeze } from '../../util/deep-freeze.ts'
import { withTimeout } from '../../util/with-timeout.ts'
import type { Call, CallEnd, ModelRequest } from '../call.ts'
import { expectRequest, isIntercepted, toEndedCall, toInterceptedCall } from '../intercepted-call.ts'
import type { InterceptedCall, Interceptor } from '../interceptor.ts'
import { EventMapping, type EventTransform } from '../output/event-mapping.ts'
import type { CallStep, OnCallError } from '../step.ts'

/** How long the end of a call waits for `after`, in ms. */
const afterTimeoutMs = 2_000

export interface InterceptorsStepOptions {
  /** These two steps run again for a changed request. */
  readonly authorise: CallStep
  readonly resolveModel: CallStep
  /** Logs the failure of an interceptor. */
  readonly onError: OnCallError
}

export class InterceptorsStep implements CallStep {
  readonly name = 'interceptors'
  readonly mayWait = true
  readonly #interceptors: readonly Interceptor[]
  readonly #options: InterceptorsStepOptions

  constructor(interceptors: readonly Interceptor[], options: InterceptorsStepOptions) {
    this.#interceptors = interceptors
    this.#options = options
  }

  /** Rejects with the `LlmError` of an interceptor. If it throws another error, rejects with `internal`. */
  async before(call: Call): Promise<void> {
    if (!isIntercepted(call)) return
    const caller = call.caller && deepFreeze(structuredClone(call.caller))
    const interception = { begun: 0, caller }
    call.interception = interception
    for (const interceptor of this.#interceptors) {
      interception.begun++
      if (!interceptor.before) continue
      await this.#changeRequests(call, caller, interceptor)
      if (call.isOver) return
    }
    if (call.kind === 'generate') call.createTransform = (index) => this.#createTransform(call, caller, index)
  }

  async after(call: Call, end: CallEnd): Promise<void> {
    const { interception } = call
    if (!interception) return
    const begun = this.#interceptors.slice(0, interception.begun).reverse()
    // This method runs again if the call has ended during `before`.
    interception.begun = 0
    const ended = toEndedCall(call, interception.caller)
    const run = async (interceptor: Interceptor): Promise<void> => {
      try {
        await interceptor.after?.(ended, end)
      } catch (cause) {
        this.#options.onError(this.#toFailure(interceptor, 'after', cause), call)
      }
    }
    await withTimeout(Promise.all(begun.map(run)), afterTimeoutMs)
  }

  /** Runs `before` of one interceptor for each request of the call. */
  async #changeRequests(call: Call, caller: Caller | undefined, interceptor: Interceptor): Promise<void> {
    const change = async (request: ModelRequest, index: number): Promise<ModelRequest> => {
      const given = toInterceptedCall(call, caller, index)
      const returned = await interceptor.before?.(given)
      const isChanged = returned !== undefined && returned !== given.request
      return isChanged ? expectRequest(call.kind, returned) : request
    }
    let requests: readonly ModelRequest[]
    try {
      requests = await raceAbort(Promise.all(call.requests.map(change)), call.signal)
      expectOneModel(requests)
    } catch (cause) {
      throw call.signal.aborted ? cause : this.#contain(call, interceptor, 'before', cause)
    }
    if (requests.every((request, index) => request === call.requests[index])) return
    const isModelChanged = requests[0]?.model !== call.requests[0]?.model
    call.requests = requests
    if (isModelChanged) await this.#options.resolveModel.before(call)
    await this.#options.authorise.before(call)
  }

  #createTransform(call: Call, caller: Caller | undefined, index: number): EventTransform | undefined {
    const given = toInterceptedCall(call, caller, index) as InterceptedCall<'generate'>
    const transforms = this.#interceptors.flatMap((interceptor) => {
      const contain = <Result>(run: () => Result): Result => {
        try {
          return run()
        } catch (cause) {
          throw this.#contain(call, interceptor, 'mapEvents', cause)
        }
      }
      const mapping = contain(() => EventMapping.of(interceptor.mapEvents?.(given)))
      return mapping ? [(event: GenerateEvent) => contain(() => mapping.apply(event))] : []
    })
    if (transforms.length === 0) return undefined
    return (event) =>
      transforms.reduceRight<readonly GenerateEvent[]>((events, map) => events.flatMap(map), [event])
  }

  /** Returns an `LlmError` as it is. Logs any other error, and returns one that clients may see. */
  #contain(call: Call, interceptor: Interceptor, method: keyof Interceptor, cause: unknown): LlmError {
    if (LlmError.is(cause)) return cause
    const failure = this.#toFailure(interceptor, method, cause)
    this.#options.onError(failure, call)
    return failure
  }

  #toFailure(interceptor: Interceptor, method: keyof Interceptor, cause: unknown): LlmError {
    const place = `interceptors[${this.#interceptors.indexOf(interceptor)}].${method}`
    const name = interceptor.name === undefined ? '' : ` ("${interceptor.name}")`
    const reason = cause instanceof Error ? cause.message : String(cause)
    return new LlmError(
      'internal',
      'An interceptor of the app failed. The log of the app says why.',
      {},
      { cause: new Error(`\`${place}\`${name} failed: ${reason}`, { cause }) },
    )
  }
}

function expectOneModel(requests: readonly ModelRequest[]): void {
  const [first] = requests
  if (requests.some(({ model }) => model !== first?.model))
    throw new TypeError('Expected the same `model` for all requests of one call')
}
