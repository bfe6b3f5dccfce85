/** What stands between a caller and the engine: limits, then money, then the queue; and afterwards what was really used. */

import type { GenerateRequest } from '../../engine/request.ts'
import { type LimitStatus, LlmError } from '../../errors.ts'
import { FairQueue } from '../../limits/fair-queue.ts'
import type { Limits, RateLimiter, Subject } from '../../limits/limits.ts'
import type { Caller } from '../auth/caller.ts'
import { JointMeter } from './joint-meter.ts'
import type { Ledger } from './ledger.ts'
import { type CallMeter, Meter, outputTokensToReserve, serverClosing } from './meter.ts'

export interface MeteringOptions {
  readonly limiter: RateLimiter
  /** Absent: nobody keeps what was used. */
  readonly ledger: Ledger | undefined
  readonly tiers: Readonly<Record<string, Limits>>
  /** Of all callers of a model together. */
  readonly modelSubjectOf: (model: string) => Subject | undefined
  /** Of each model. Absent: the engine's own is enough. */
  readonly queue: { readonly permits: number; readonly maxQueued: number } | undefined
  /** Hears of what callers cannot help, and do not notice. */
  readonly onError: (cause: unknown) => void
}

export interface MeteredCall {
  /** Of the answer. */
  readonly id: string
  readonly caller?: Caller | undefined
  readonly model: string
  readonly dialect?: string | undefined
  readonly isBatch?: boolean | undefined
  /** As far as its text says: the model that would count it may have to be loaded. What it really had is known afterwards. */
  readonly estimatedInputTokens: number
  /** Absent: nobody says. */
  readonly maxTokens?: number | undefined
  /** It waits in no queue: nobody waits for it, or the engine has one of its own for such. */
  readonly isUnqueued?: boolean | undefined
}

/** Answers that are one call, each asked for once. */
export interface CallGroup {
  readonly requests: readonly GenerateRequest[]
  /** Aborts where their caller has left, also between two of them. */
  readonly signal: AbortSignal
}

/** A token has some four bytes, and a message some tokens around it. */
export const estimateTokens = (bytes: number, messages = 0): number => Math.ceil(bytes / 4) + 4 * messages

/** What a call is that no model answers: the length of a prompt, or its text; the running of the whole; or to load, a call like others. */
export type NonInferenceKind = 'count' | 'admin' | 'load'

/** Who asks in the app itself, and names nobody. */
const anonymousCaller: Caller = { id: '' }

export class Metering {
  readonly #options: MeteringOptions
  /** Of calls that run. */
  readonly #open = new Set<Meter>()
  #isClosed = false
  /** By what several answers are. */
  readonly #groupMeters = new WeakMap<object, Promise<JointMeter | undefined>>()
  /** By model: those that somebody uses. */
  readonly #queues = new Map<string, { readonly queue: FairQueue; users: number }>()

  constructor(options: MeteringOptions) {
    this.#options = options
  }

  /**
   * Lets in what no model answers: it takes from requests per minute of its own, as many as its caller has for answers; what loads a
   * model, from those. Throws `rate_limit`.
   */
  async admit(caller: Caller, kind: NonInferenceKind): Promise<readonly LimitStatus[]> {
    const { requestsPerMinute } = this.#limitsOf(caller)
    if (requestsPerMinute === undefined) return []
    const subject: Subject = {
      id: `${kind === 'load' ? 'caller' : kind}:${caller.id}`,
      limits: { requestsPerMinute },
    }
    return (await this.#options.limiter.reserve([subject], { requests: 1, tokens: 0 })).limits
  }

  /** Charges calls that still run for what they have used; nothing runs any more from here on. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#open].map((meter) => meter.close()))
  }

  /** Takes from all limits or from none: throws `rate_limit`. Nothing where nobody counts. */
  async begin(call: MeteredCall): Promise<Meter | undefined> {
    const { limiter, ledger, queue } = this.#options
    const { caller = anonymousCaller } = call
    if (caller.spendLimit && !ledger)
      throw new TypeError('A caller with `spendLimit` needs the option `database` of createLlm.')
    const subjects = this.#subjects(caller, call.model)
    if (subjects.length === 0 && !ledger && !queue) return undefined
    if (this.#isClosed) throw serverClosing()

    const tokens = call.estimatedInputTokens + outputTokensToReserve(call.maxTokens)
    const reservation =
      subjects.length > 0 ? await limiter.reserve(subjects, { requests: 1, tokens }) : undefined
    const meter = new Meter({ ...call, caller }, this.#options, {
      limitReservation: reservation && { reservation, tokens },
      enterQueue: (signal) =>
        call.isUnqueued ? bypassQueue(signal) : this.#enterQueue(call.model, caller.id, signal),
      onSettled: () => this.#open.delete(meter),
    })
    this.#open.add(meter)
    // Meanwhile the app may have closed.
    if (this.#isClosed) await meter.close()
    return meter
  }

  /** One of several answers that are one call: `call`, which begins with the first of them. */
  async beginPart(group: CallGroup, call: MeteredCall): Promise<CallMeter | undefined> {
    const { requests, signal } = group
    const joint =
      this.#groupMeters.get(group) ??
      this.begin(call).then((meter) => meter && new JointMeter(meter, requests.length, signal))
    this.#groupMeters.set(group, joint)
    return (await joint)?.part()
  }

  #subjects(caller: Caller, model: string): readonly Subject[] {
    const own = this.subjectOf(caller)
    const ofModel = this.#options.modelSubjectOf(model)
    return [...(own.limits ? [own] : []), ...(ofModel ? [ofModel] : [])]
  }

  /** As whom a caller comes under limits, in all that it does. Without limits where it has none. */
  subjectOf(caller: Caller): Subject {
    const limits = this.#limitsOf(caller)
    return { id: `caller:${caller.id}`, ...(Object.keys(limits).length > 0 && { limits }) }
  }

  #limitsOf({ tier, limits }: Pick<Caller, 'tier' | 'limits'>): Limits {
    if (tier === undefined) return definedLimits(limits)
    const { tiers } = this.#options
    if (!Object.hasOwn(tiers, tier)) throw unknownTier(tier)
    return { ...tiers[tier], ...definedLimits(limits) }
  }

  async #enterQueue(model: string, caller: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { queue } = this.#options
    if (!queue) return bypassQueue(signal)
    const entry = this.#queues.get(model) ?? { queue: new FairQueue(queue), users: 0 }
    this.#queues.set(model, entry)
    entry.users++
    const leave = (): void => {
      if (--entry.users === 0) this.#queues.delete(model)
    }
    try {
      const release = await entry.queue.acquire(caller, signal)
      if (!release) {
        leave()
        return undefined
      }
      return () => {
        release()
        leave()
      }
    } catch (error) {
      leave()
      throw error
    }
  }
}

const bypassQueue = async (signal: AbortSignal): Promise<(() => void) | undefined> =>
  signal.aborted ? undefined : () => {}

const definedLimits = (limits: Limits = {}): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))

const unknownTier = (tier: string): LlmError =>
  new LlmError('internal', `The tier "${tier}" of this caller is not one of the server's.`, { setup: true })
