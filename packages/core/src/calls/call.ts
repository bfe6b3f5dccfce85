/** One call: what a caller asks for, and what the steps of the pipeline have found out about it. */
import { nanoid } from 'nanoid'
import type { Caller } from '../accounts/auth/caller.ts'
import type { CallStatus, CreditReservation, WorstCase } from '../accounts/usage/ledger.ts'
import type { EngineCall } from '../engine/engine.ts'
import type { TokenUsage } from '../engine/events.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { Reservation } from '../limits/limits.ts'
import type { Model } from '../models/model.ts'

/** What a call does. Only `generate`, `embed` and `rerank` use tokens; `admin` concerns no model. */
export type CallKind =
  | 'generate'
  | 'embed'
  | 'rerank'
  | 'count'
  | 'render'
  | 'tokenize'
  | 'detokenize'
  | 'load'
  | 'unload'
  | 'admin'

export interface CallOptions {
  readonly signal: AbortSignal
  /** The caller that limits and spending are counted by. KV state of one caller's tenant is never used for another's. */
  readonly caller?: Caller
  /** Pauses while other calls wait for an answer. */
  readonly background?: boolean
  /** Opens after the first event or 5 s, whichever comes first. Without it, after the first event. */
  readonly stream?: boolean
  /** The API that the call came by, for the ledger. */
  readonly dialect?: string
  /** An item of a batch: costs half the price. */
  readonly batch?: boolean
}

/** Options of a call whose result arrives whole. */
export type UnaryCallOptions = Partial<Omit<CallOptions, 'stream'>>

/** What every request to an engine has. */
export interface ModelRequest {
  readonly model: string
  readonly load?: LoadOptions
}

/** The end of a call, for the steps' `after`. */
export interface CallEnd {
  /** Absent: the model has evaluated nothing. */
  readonly usage: TokenUsage | undefined
  readonly status: CallStatus
  readonly durationMs: number
}

export interface CallSettings extends UnaryCallOptions {
  readonly kind: CallKind
  readonly signal: AbortSignal
  /** All of one model; none for `admin`. */
  readonly requests: readonly ModelRequest[]
  /** Looks a model up by its name. Rejects with `not_found`. */
  readonly findModel?: ((name: string) => Promise<Model>) | undefined
  /** Called with the state of the limits when the call was admitted or rejected. */
  readonly onLimits?: ((limits: readonly LimitStatus[]) => void) | undefined
}

/** The state of one call. The steps of the pipeline write it; each field names its step. */
export class Call {
  readonly id = nanoid()
  readonly kind: CallKind
  readonly caller: Caller | undefined
  readonly dialect: string | undefined
  readonly isBatch: boolean
  readonly isBackground: boolean
  readonly findModel: CallSettings['findModel']
  readonly #onLimits: CallSettings['onLimits']

  /** Aborts when the client leaves. The revocation step replaces it by one that also aborts when the key is revoked. */
  signal: AbortSignal
  /** The defaults step adds what the Modelfile says. */
  requests: readonly ModelRequest[]
  /** Set by the model step. Absent where the store does not know the name: a custom engine may. */
  model: Model | undefined
  /** The model's canonical name, for prices, limits and the ledger. */
  modelName: string
  /** Set by the limits step. */
  limits: readonly LimitStatus[] = []
  limitReservation: { readonly reservation: Reservation; tokens: number } | undefined
  /** Set by the queue step: frees the permit. */
  leaveQueue: (() => void) | undefined
  /** Set by the credit step. */
  credit: Promise<CreditReservation> | undefined
  maxOutputTokens = Number.POSITIVE_INFINITY
  /** Set by the revocation step: frees what it holds. */
  stopWatching: (() => void) | undefined
  /** The error that ended the call early, for its reader. Absent where the client has left. */
  endReason: LlmError | undefined
  /** From then on the call costs a request and gets a row in the ledger. */
  hasStarted = false
  /** Whether its tokens are counted: then the engine generates only a little ahead of its reader. */
  isMetered = false
  /** Whether `after` has run: what is used from then on is not charged. */
  isOver = false
  /** Counts the most that the call can use. Loads the model where it has to. Set by the pipeline. */
  computeWorstCase: () => Promise<WorstCase> = async () => ({ inputTokens: 0, outputTokens: 0 })

  constructor({ kind, caller, dialect, batch = false, background = false, ...settings }: CallSettings) {
    this.kind = kind
    this.caller = caller
    this.dialect = dialect
    this.isBatch = batch
    this.isBackground = background
    this.signal = settings.signal
    this.requests = settings.requests
    this.modelName = settings.requests[0]?.model ?? ''
    this.findModel = settings.findModel
    this.#onLimits = settings.onLimits
  }

  /** How the limits stood when the call was admitted or rejected. */
  reportLimits(limits: readonly LimitStatus[]): void {
    this.limits = limits
    this.#onLimits?.(limits)
  }

  /** Throws `overloaded` when the app has closed meanwhile. */
  throwIfOver(): void {
    if (this.isOver) throw serverClosing()
  }

  toEngineCall(signal = this.signal): EngineCall {
    return {
      signal,
      tenant: tenantOf(this.caller),
      background: this.isBackground,
      ...(this.model && { model: this.model }),
    }
  }
}

export const isGenerateRequest = (request: ModelRequest): request is GenerateRequest => 'input' in request

/** Partition of the prompt cache: callers of one tenant share KV state. */
const tenantOf = (caller: Caller | undefined): string => caller?.tenant ?? caller?.id ?? ''

export const serverClosing = (): LlmError =>
  new LlmError('overloaded', 'The server is closing.', { retryAfterMs: 1_000 })
