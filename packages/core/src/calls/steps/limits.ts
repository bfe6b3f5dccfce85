/**
 * Reserves requests and tokens from the rate limits. When the engine has finished, corrects the reservations to
 * the actual usage. Also looks up the weight of the caller's tier.
 */
import type { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import {
  addTokenCounts,
  type CallUsage,
  noTokens,
  type TokenCounts,
  tokenCountsOf,
} from '../../accounts/usage/call-usage.ts'
import { LlmError } from '../../errors.ts'
import type { Cost, Limits, RateLimiter, Reservation, Subject } from '../../limits/limits.ts'
import { type Call, type CallEnd, isGenerateRequest } from '../call.ts'
import { estimateInputTokens } from '../estimate.ts'
import type { CallKind } from '../kind.ts'
import type { CallStep, OnCallError } from '../step.ts'

export interface LimitsStepOptions {
  readonly limiter: RateLimiter
  readonly subjects: CallerSubjects
  /** Returns the subject that counts the calls of all callers of a model. Undefined without limits. */
  readonly modelSubjectOf: (model: string) => Subject | undefined
  /** Called when the limiter fails in the background. */
  readonly onError: OnCallError
}

/**
 * How many output tokens are reserved at a time. Many clients set `max_tokens` far above the real output. If the
 * texts of an embedding call have more tokens than estimated, as many input tokens are reserved at a time.
 */
const reservedTokens = 1_024

/**
 * The buckets that count calls without tokens, by kind of call. Kinds that are not listed are not counted.
 * Calls with tokens also use the bucket `caller`. The other buckets are separate and have the same size.
 */
const requestBuckets: Partial<Record<CallKind, string>> = {
  count: 'count',
  render: 'count',
  load: 'caller',
  unload: 'caller',
  admin: 'admin',
  storage: 'storage',
}
const meteredKinds: readonly CallKind[] = ['generate', 'embed', 'rerank']

/**
 * Which limits a step checks. With interceptors, one step checks how many calls a caller makes before they run,
 * because interceptors may be costly. Another one checks tokens and the limits of the model after they have run,
 * because they may change the request and its model.
 */
export type LimitsPart = 'all' | 'before-interceptors' | 'after-interceptors'

const limitNames: Readonly<Record<Exclude<LimitsPart, 'all'>, readonly (keyof Limits)[]>> = {
  'before-interceptors': ['requestsPerMinute', 'concurrent'],
  'after-interceptors': ['tokensPerMinute', 'inputTokensPerMinute', 'outputTokensPerMinute', 'tokensPerDay'],
}

export class LimitsStep implements CallStep {
  readonly name = 'limits'
  readonly #options: LimitsStepOptions
  readonly #part: LimitsPart

  constructor(options: LimitsStepOptions, part: LimitsPart = 'all') {
    this.#options = options
    this.#part = part
  }

  /** Rejects with an `LlmError` `rate_limit` if a limit does not admit the call. */
  async before(call: Call): Promise<void> {
    if (call.forwarded) {
      call.weight = call.forwarded.weight ?? 1
      return
    }
    if (call.caller) call.weight = this.#options.subjects.weightOf(call.caller)
    if (call.batchItem) return
    const subjects = this.#subjectsOf(call)
    if (subjects.length === 0) return
    const isMetered = meteredKinds.includes(call.kind)
    const hasTokens = isMetered && this.#part !== 'before-interceptors'
    const cost = { requests: 1, ...(hasTokens ? estimateTokensOf(call) : noTokens) }
    try {
      const reservation = await this.#reserve(call, subjects, cost)
      call.limitReservations = [...call.limitReservations, reservation]
      call.reportLimits(reservation.limits)
    } catch (cause) {
      const { limits } = LlmError.from(cause).details
      if (limits) call.reportLimits(limits)
      throw cause
    }
  }

  /** If there are too few input tokens for the whole prompt, tries again without those that are cached. */
  async #reserve(call: Call, subjects: readonly Subject[], cost: Required<Cost>): Promise<Reservation> {
    const { limiter } = this.#options
    const reserve = async (cost: Required<Cost>): Promise<Reservation> => {
      const reservation = await limiter.reserve(subjects, cost)
      call.reservedTokens = addTokenCounts(call.reservedTokens, cost)
      return reservation
    }
    try {
      return await reserve(cost)
    } catch (cause) {
      if (LlmError.from(cause).details.exceeded !== 'inputTokens') throw cause
      const inputTokens = await call.countUncachedTokens()
      if (inputTokens === undefined || inputTokens >= cost.inputTokens) throw cause
      return reserve({ ...cost, inputTokens })
    }
  }

  /**
   * Reserves more tokens when the usage exceeds the reservation. Runs in the background, and a failure does
   * not end the answer.
   */
  onUsage(call: Call, usage: CallUsage): void {
    if (call.limitReservations.length === 0) return
    const used = tokenCountsOf(usage)
    const reserved = call.reservedTokens
    const isGenerating = call.kind === 'generate'
    const ahead = isGenerating ? outputTokensToReserve(maxTokensOf(call), used.outputTokens) : reservedTokens
    const missing = (name: keyof TokenCounts, extra: number): number =>
      used[name] > reserved[name] ? used[name] - reserved[name] + extra : 0
    const more = {
      tokens: missing('tokens', ahead),
      inputTokens: missing('inputTokens', isGenerating ? 0 : ahead),
      outputTokens: missing('outputTokens', isGenerating ? ahead : 0),
    }
    if (Math.max(more.tokens, more.inputTokens, more.outputTokens) === 0) return
    call.reservedTokens = addTokenCounts(reserved, more)
    for (const reservation of call.limitReservations)
      reservation.take({ requests: 0, ...more }).catch((cause) => this.#options.onError(cause, call))
  }

  /** All tokens are generated now, and a slow reader must not count as a running call. */
  onGenerated(call: Call, usage: CallUsage | undefined): Promise<void> {
    return this.#settle(call, usage)
  }

  after(call: Call, { usage }: CallEnd): Promise<void> {
    return this.#settle(call, usage)
  }

  async #settle(call: Call, usage: CallUsage | undefined): Promise<void> {
    const { limitReservations } = call
    const isCounted = call.hasStarted && !call.isReplaced
    call.limitReservations = []
    const cost = { requests: 1, ...(usage ? tokenCountsOf(usage) : noTokens) }
    await Promise.all(
      limitReservations.map((reservation) =>
        (isCounted ? reservation.settle(cost) : reservation.release()).catch((cause) =>
          this.#options.onError(cause, call),
        ),
      ),
    )
  }

  #subjectsOf({ kind, caller, endUser, modelName }: Call): readonly Subject[] {
    const { subjects, modelSubjectOf } = this.#options
    if (!meteredKinds.includes(kind)) {
      const bucket = this.#part === 'after-interceptors' ? undefined : requestBuckets[kind]
      const subject = caller && bucket && subjects.requestsOf(caller, bucket)
      return subject ? [subject] : []
    }
    const ofCaller = caller ? [subjects.of(caller), subjects.endUserOf(caller, endUser)] : []
    const ofModel = this.#part === 'before-interceptors' ? undefined : modelSubjectOf(modelName)
    return [
      ...ofCaller.flatMap((subject) => this.#selectLimits(subject) ?? []),
      ...(ofModel ? [ofModel] : []),
    ]
  }

  /** Returns the subject with the limits of this part. Undefined if there are none. */
  #selectLimits(subject: Subject | undefined): Subject | undefined {
    if (!subject?.limits || this.#part === 'all') return subject?.limits && subject
    const names: readonly string[] = limitNames[this.#part]
    const limits = Object.entries(subject.limits).filter(([name]) => names.includes(name))
    return limits.length > 0 ? { ...subject, limits: Object.fromEntries(limits) } : undefined
  }
}

/** The whole prompt and the first output tokens. */
function estimateTokensOf(call: Call): TokenCounts {
  const inputTokens = estimateInputTokens(call)
  const outputTokens = outputTokensToReserve(maxTokensOf(call))
  return { tokens: inputTokens + outputTokens, inputTokens, outputTokens }
}

const outputTokensToReserve = (maxTokens: number, written = 0): number =>
  Math.max(0, Math.min(maxTokens - written, reservedTokens))

/** Maximum output tokens of all requests together. Infinite without a maximum. */
function maxTokensOf({ requests, maxOutputTokens }: Call): number {
  const each = requests.map((request) =>
    isGenerateRequest(request) ? (request.maxTokens ?? Number.POSITIVE_INFINITY) : 0,
  )
  return Math.min(
    maxOutputTokens,
    each.reduce((sum, maxTokens) => sum + maxTokens, 0),
  )
}
