/** The state of one call: the requests of the caller, and the results of the steps. */
import { setMaxListeners } from 'node:events'
import { nanoid } from 'nanoid'
import { type Caller, tenantOf } from '../accounts/auth/caller.ts'
import { type CallUsage, noTokens, type TokenCounts } from '../accounts/usage/call-usage.ts'
import type { CallStatus, CreditReservation, DeferredCharge, WorstCase } from '../accounts/usage/ledger.ts'
import type { EngineCall } from '../engine/engine.ts'
import type { FinishReason, Timings } from '../engine/events.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { Reservation } from '../limits/limits.ts'
import type { Model } from '../models/model.ts'
import type { ResolvedModel } from '../models/model-resolver.ts'
import type { CallKind } from './kind.ts'
import type { EventTransform } from './output/event-mapping.ts'

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call. @default the call runs to its end */
  readonly signal?: AbortSignal | undefined
  /**
   * The caller whose limits and spending this call counts for. KV state is reused only within its tenant, and
   * tenants get fair shares of the model's time.
   *
   * @default none: the app itself
   */
  readonly caller?: Caller | undefined
  /**
   * Id of the end user behind the caller, of any length. The limits `perEndUser` of the caller are counted
   * for each id. Only a hash of it is stored.
   *
   * @default none: such calls share the limits of one end user
   */
  readonly endUser?: string | undefined
  /** Whether this call pauses while the model has foreground calls. @default false */
  readonly background?: boolean
  /** Whether `generate` resolves after 5 s even if the first event has not come yet. @default false */
  readonly stream?: boolean
  /**
   * Name of the API that received the call, such as `openai`. The ledger records it.
   *
   * @default none: a call of the app
   */
  readonly dialect?: string
}

/** Options of a call that returns one result instead of a stream. */
export type UnaryCallOptions = Omit<CallOptions, 'stream'>

/** An item of a batch. Its calls run in the background, cost half the price, and count towards no rate limit. */
export interface BatchItemCall {
  /** Receives the charge of each call that uses tokens, before the end of its answer. */
  readonly onCharge: (charge: DeferredCharge) => void
}

/** A call that another app with Modelmount forwards. That app has limited and charged it, so this one does neither. */
export interface ForwardedCall {
  /** Tenant of the call in the other app. */
  readonly tenant: string
  /** Share of the model's time that the tenant gets, relative to other tenants. Above 0. @default 1 */
  readonly weight?: number | undefined
  /** Whether the call pauses while the model has foreground calls. @default false */
  readonly background?: boolean
  /** Whether the other app has applied the Modelfile defaults of the model. @default false */
  readonly hasDefaults?: boolean
  /** Context size that the other app's caller asked for without the scope `models`, in tokens. @default none */
  readonly requestedContextSize?: number | undefined
}

/** Fields that all engine requests share. */
export interface ModelRequest {
  readonly model: string
  readonly load?: LoadOptions
}

/** How a call ended. Steps receive it in `after`. */
export interface CallEnd {
  /** Undefined if the model has evaluated nothing. */
  readonly usage: CallUsage | undefined
  readonly status: CallStatus
  /** Why the call failed or was ended. Undefined if it ended normally, and if its client left. */
  readonly error: LlmError | undefined
  /** The finish reason of each answer, in order. Undefined for an answer whose reader did not get its end. */
  readonly finishReasons: readonly (FinishReason | undefined)[]
  /** The engine's times of each answer, in order. Undefined as in `finishReasons`. */
  readonly timings: readonly (Timings | undefined)[]
  readonly durationMs: number
}

export interface CallSettings extends UnaryCallOptions {
  readonly kind: CallKind
  readonly signal: AbortSignal
  /** All requests are for the same model. Empty for `admin` and `storage`. */
  readonly requests: readonly ModelRequest[]
  /** Number of consecutive requests that share a prompt. The prompt is charged once. @default 1 */
  readonly answersPerPrompt?: number | undefined
  /** Finds a model by its name or alias. */
  readonly resolveModel?: ((name: string) => Promise<ResolvedModel>) | undefined
  /**
   * Whether another call takes the place of this one, which has failed with this error before its first event. The failed
   * call then counts towards no limit, and has no row in the ledger. @default never
   */
  readonly isReplaced?: ((cause: unknown) => boolean) | undefined
  /** Called with the status of the limits when the limits step admits or rejects the call. */
  readonly onLimits?: ((limits: readonly LimitStatus[]) => void) | undefined
  /** The pattern of the route that received the call. Absent for calls of the app. */
  readonly route?: string | undefined
  /** The id of the HTTP request. Absent for calls of the app. */
  readonly requestId?: string | undefined
  /** Returns a header of the HTTP request. Absent for calls of the app. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /** Closes the connection of a client that does not read its answer. Absent for calls of the app. */
  readonly disconnect?: (() => void) | undefined
  /** Set for the calls of an item of a batch. */
  readonly batchItem?: BatchItemCall | undefined
  /** Set for a call that another app forwards. */
  readonly forwarded?: ForwardedCall | undefined
  /** Whether the call belongs to work that was admitted before: a request to a route, or `llm.chat()`. @default false */
  readonly isAdmitted?: boolean | undefined
}

const noLimits: readonly LimitStatus[] = []
const computeNothing = async (): Promise<WorstCase> => ({ inputTokens: 0, outputTokens: 0 })

/** The state of one call. Steps read and change it. */
export class Call {
  readonly id = nanoid()
  readonly kind: CallKind
  readonly caller: Caller | undefined
  readonly endUser: string | undefined
  readonly dialect: string | undefined
  readonly route: string | undefined
  readonly requestId: string | undefined
  readonly header: CallSettings['header']
  readonly batchItem: BatchItemCall | undefined
  readonly forwarded: ForwardedCall | undefined
  readonly isBackground: boolean
  readonly answersPerPrompt: number
  readonly resolveModel: CallSettings['resolveModel']
  readonly disconnect: CallSettings['disconnect']
  readonly #onLimits: CallSettings['onLimits']
  readonly #isReplaced: CallSettings['isReplaced']

  /** Aborts when the client leaves, and when `end` is called. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #clientSignal: AbortSignal
  readonly #onClientAbort = (): void => this.#controller.abort(this.#clientSignal.reason)
  /** The requests as the caller sent them. */
  readonly originalRequests: readonly ModelRequest[]
  /**
   * The step `resolve-model` replaces an alias by the name of its model. The authorise step removes load options that
   * the caller may not choose. Interceptors may change each request.
   * The defaults step adds the Modelfile defaults. The output limit step lowers their maximum output tokens.
   */
  requests: readonly ModelRequest[]
  /** Whether the requests have the Modelfile defaults of the model. Set by the defaults step. */
  hasDefaults: boolean
  /** The context size that the authorise step has removed. With several requests, the largest one. */
  requestedContextSize: number | undefined
  /**
   * Set by the step `resolve-model`. Undefined if the store does not contain the model. Such a model may
   * exist in a custom engine.
   */
  model: Model | undefined
  /** The model's canonical name, for prices, limits and the ledger. */
  modelName: string
  /** The requested name, if it is an alias or the id of a snapshot. Set by the step `resolve-model`. */
  alias: string | undefined
  /** Share of the model's time that the tenant gets. Set by the limits step. */
  weight = 1
  /** Set by the limits steps. */
  limits: readonly LimitStatus[] = noLimits
  limitReservations: readonly Reservation[] = []
  /** Tokens that the reservations contain. */
  reservedTokens: TokenCounts = noTokens
  /** Set by the interceptors step: how many interceptors have begun, and their copy of the caller. */
  interception: { begun: number; readonly caller: Caller | undefined } | undefined
  /**
   * Creates the function that maps the events of the answer with this index. Set by the interceptors step.
   */
  createTransform: ((index: number) => EventTransform | undefined) | undefined
  /** Releases the permit. Set by the queue step. */
  leaveQueue: (() => void) | undefined
  /** Receives how far the call has come before its first token. Set by the diagnostics step. */
  onProgress: EngineCall['onProgress']
  /** Whether the caller asked for a stream. */
  isStream = false
  /** Whether the reader passes the answer on while it is generated. A unary response is sent at its end. */
  isPassedOn = false
  /** Returns the cost of usage in billionths of a dollar, if the model has a price. Set by the credit step. */
  costOf: ((usage: CallUsage) => number | undefined) | undefined
  /** Set by the credit step. */
  credit: Promise<CreditReservation> | undefined
  /** Notes what the reader has got, for the case that this process is killed. Set by the credit step. */
  noteProgress: ((usage: CallUsage) => Promise<unknown> | undefined) | undefined
  /**
   * Maximum output tokens of all answers together. The output limit step sets it to the maximum of the caller,
   * and the credit step lowers it to what the credit pays for.
   */
  maxOutputTokens = Number.POSITIVE_INFINITY
  /** Stops watching the API key. Set by the revocation step. */
  stopWatching: (() => void) | undefined
  /** The error that ends the call, such as the revocation of its API key. Set by `end`. */
  endReason: LlmError | undefined
  /** Whether the call has begun to use the engine. From then on it counts as a request, even if it fails. */
  hasStarted = false
  /** Whether another call takes the place of this one, which has failed. Set by `markFailed`. */
  isReplaced = false
  /** Whether the call has ended. Later usage is not charged. */
  isOver = false
  /**
   * Computes the maximum tokens of the call. Loads the model to count the tokens of the prompt. Set by the
   * pipeline.
   */
  computeWorstCase: () => Promise<WorstCase> = computeNothing
  /**
   * Counts the input tokens that the call would not read from the prompt cache. Undefined if the cache holds nothing of
   * the prompts, as far as is known without loading the model. Set by the pipeline.
   */
  countUncachedTokens: () => Promise<number | undefined> = async () => undefined

  constructor({ kind, caller, dialect, background = false, ...settings }: CallSettings) {
    this.kind = kind
    this.caller = caller
    this.endUser = settings.endUser
    this.dialect = dialect
    this.route = settings.route
    this.requestId = settings.requestId
    this.header = settings.header
    this.batchItem = settings.batchItem
    this.forwarded = settings.forwarded
    this.hasDefaults = settings.forwarded?.hasDefaults ?? false
    this.isBackground = background || this.forwarded?.background || settings.batchItem !== undefined
    this.signal = this.#controller.signal
    // Each answer of the call listens. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, this.signal)
    this.#clientSignal = settings.signal
    this.#clientSignal.addEventListener('abort', this.#onClientAbort, { once: true })
    if (this.#clientSignal.aborted) this.#onClientAbort()
    this.answersPerPrompt = settings.answersPerPrompt ?? 1
    this.originalRequests = settings.requests
    this.requests = settings.requests
    this.modelName = settings.requests[0]?.model ?? ''
    this.resolveModel = settings.resolveModel
    this.disconnect = settings.disconnect
    this.#onLimits = settings.onLimits
    this.#isReplaced = settings.isReplaced
  }

  get tenant(): string {
    return this.forwarded?.tenant ?? tenantOf(this.caller)
  }

  /** Ends the call with an error, as if its client had left. */
  end(reason: LlmError): void {
    this.endReason ??= reason
    this.#controller.abort()
  }

  /** Decides whether another call takes the place of this one. A call that was ended from outside is not replaced. */
  markFailed(cause: unknown): void {
    if (this.isReplaced || this.endReason || this.signal.aborted) return
    this.isReplaced = this.#isReplaced?.(cause) ?? false
  }

  /** Stops listening to the signal of the client, which may outlive the call. */
  release(): void {
    this.#clientSignal.removeEventListener('abort', this.#onClientAbort)
  }

  /** Records and reports the status of the limits when the call is admitted or rejected. */
  reportLimits(limits: readonly LimitStatus[]): void {
    this.limits = this.limits.length === 0 ? limits : keepLowest([...this.limits, ...limits])
    this.#onLimits?.(limits)
  }

  /** Throws an `LlmError` if the call has already ended: `endReason`, or `overloaded` because the app closes. */
  throwIfOver(): void {
    if (this.isOver) throw this.endReason ?? serverClosing()
  }

  toEngineCall(signal = this.signal): EngineCall {
    return {
      signal,
      tenant: this.tenant,
      weight: this.weight,
      background: this.isBackground,
      ...(this.requestId !== undefined && {
        logFields: { requestId: this.requestId, ...(this.caller?.key && { key: this.caller.key.id }) },
      }),
      ...(this.onProgress && { onProgress: this.onProgress }),
      ...(this.model && { model: this.model }),
      ...(this.hasDefaults && { hasDefaults: true }),
      ...(this.alias !== undefined && { alias: this.alias }),
      ...(this.requestedContextSize !== undefined && { requestedContextSize: this.requestedContextSize }),
    }
  }
}

/** Keeps one status for each name and window: the one with the least remaining. */
const keepLowest = (limits: readonly LimitStatus[]): readonly LimitStatus[] =>
  limits.filter(
    ({ name, windowMs, remaining }, index) =>
      !limits.some(
        (other, at) =>
          other.name === name &&
          other.windowMs === windowMs &&
          (other.remaining < remaining || (other.remaining === remaining && at < index)),
      ),
  )

export const isGenerateRequest = (request: ModelRequest): request is GenerateRequest => 'input' in request

export const serverClosing = (): LlmError =>
  new LlmError('overloaded', 'The server is closing.', { retryAfterMs: 1_000 })
