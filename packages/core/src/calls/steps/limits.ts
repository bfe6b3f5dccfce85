/**
 * Reserves requests and tokens from the rate limits. When the engine has finished, corrects the reservation to
 * the actual usage. Also looks up the weight of the caller's tier.
 */
import type { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import { type CallUsage, totalTokensOf } from '../../accounts/usage/call-usage.ts'
import { LlmError } from '../../errors.ts'
import type { RateLimiter, Subject } from '../../limits/limits.ts'
import { type Call, type CallEnd, type CallKind, isGenerateRequest } from '../call.ts'
import { estimateInputTokens } from '../estimate.ts'
import type { CallStep } from '../step.ts'

export interface LimitsStepOptions {
  readonly limiter: RateLimiter
  readonly subjects: CallerSubjects
  /** Returns the subject that counts the calls of all callers of a model. Undefined without limits. */
  readonly modelSubjectOf: (model: string) => Subject | undefined
  /** Called when the limiter fails in the background. */
  readonly onError: (cause: unknown) => void
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
  batch: 'batch',
}
const meteredKinds: readonly CallKind[] = ['generate', 'embed', 'rerank']

export class LimitsStep implements CallStep {
  readonly name = 'limits'
  readonly #options: LimitsStepOptions

  constructor(options: LimitsStepOptions) {
    this.#options = options
  }

  /** Rejects with an `LlmError` `rate_limit` if a limit does not admit the call. */
  async before(call: Call): Promise<void> {
    if (call.caller) call.weight = this.#options.subjects.weightOf(call.caller)
    if (call.batchItem) return
    const subjects = this.#subjectsOf(call)
    if (subjects.length === 0) return
    const isMetered = meteredKinds.includes(call.kind)
    const tokens = isMetered ? estimateInputTokens(call) + outputTokensToReserve(maxTokensOf(call)) : 0
    try {
      const reservation = await this.#options.limiter.reserve(subjects, { requests: 1, tokens })
      call.limitReservation = isMetered ? { reservation, tokens } : undefined
      call.reportLimits(reservation.limits)
    } catch (cause) {
      const { limits } = LlmError.from(cause).details
      if (limits) call.reportLimits(limits)
      throw cause
    }
  }

  /**
   * Reserves more tokens when the usage exceeds the reservation. Runs in the background, and a failure does
   * not end the answer.
   */
  onUsage(call: Call, usage: CallUsage): void {
    const taken = call.limitReservation
    if (!taken) return
    const missing = totalTokensOf(usage) - taken.tokens
    if (!(missing > 0)) return
    const generated = usage.outputTokens + usage.undeliveredTokens
    const ahead =
      call.kind === 'generate' ? outputTokensToReserve(maxTokensOf(call), generated) : reservedTokens
    const tokens = missing + ahead
    taken.tokens += tokens
    taken.reservation.take({ requests: 0, tokens }).catch(this.#options.onError)
  }

  /** All tokens are generated now, and a slow reader must not count as a running call. */
  onGenerated(call: Call, usage: CallUsage | undefined): Promise<void> {
    return this.#settle(call, usage)
  }

  after(call: Call, { usage }: CallEnd): Promise<void> {
    return this.#settle(call, usage)
  }

  async #settle(call: Call, usage: CallUsage | undefined): Promise<void> {
    const { limitReservation, hasStarted } = call
    call.limitReservation = undefined
    if (!limitReservation) return
    const { reservation } = limitReservation
    const tokens = usage ? totalTokensOf(usage) : 0
    await (hasStarted ? reservation.settle({ requests: 1, tokens }) : reservation.release()).catch(
      this.#options.onError,
    )
  }

  #subjectsOf({ kind, caller, endUser, modelName }: Call): readonly Subject[] {
    const { subjects, modelSubjectOf } = this.#options
    if (!meteredKinds.includes(kind)) {
      const bucket = requestBuckets[kind]
      const subject = caller && bucket && subjects.requestsOf(caller, bucket)
      return subject ? [subject] : []
    }
    const own = caller && subjects.of(caller)
    const ofEndUser = caller && subjects.endUserOf(caller, endUser)
    const ofModel = modelSubjectOf(modelName)
    return [...(own?.limits ? [own] : []), ...(ofEndUser ? [ofEndUser] : []), ...(ofModel ? [ofModel] : [])]
  }
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
