/** Decides which prompt gets the next slot, and which sequence gives up its slot for it. */
import type { GenerationJob } from '../runner.ts'
import type { FairClock } from './fair-clock.ts'
import {
  isPaused,
  isPreemptible,
  isReady,
  type QueuedPrompt,
  type RunningSequence,
  type SuspendedSequence,
} from './running-sequence.ts'

/** Answers of up to this many tokens end without a break, unless their tenant is `newAnswerLeadMs` ahead. */
const newAnswerTokens = 64
/** As `SlotShares.promptLeadMs`, for a slot with a new answer. */
export const newAnswerLeadMs = 250

export interface SlotShares {
  readonly running: readonly RunningSequence[]
  /** Time for which each tenant has held slots. */
  readonly clock: Pick<FairClock, 'timeOf' | 'orderTimeOf'>
  readonly slotCount: number
  /**
   * A tenant gives up a slot to a prompt without output when it is this far ahead of the prompt's tenant, in ms
   * of virtual time.
   */
  readonly promptLeadMs: number
  /**
   * A tenant gives up a slot to a sequence that continues when it is this far ahead of its tenant, in ms of
   * virtual time. Two tenants that share one slot take turns of twice this time: each first makes up for its own
   * wait.
   */
  readonly turnLeadMs: number
  /** Whether a sequence may now give up its slot to one that continues. */
  readonly canEndTurn: boolean
  /** Whether a sequence of the job can give up its slot at any time. */
  canSuspend(job: GenerationJob): boolean
}

/**
 * Selects the prompt that gets the next slot: the oldest prompt of the tenant with the fewest running
 * sequences relative to its weight. Of several such tenants, one that has just arrived is next, or else the one that
 * has held slots for less time. Foreground prompts precede background prompts. A sequence that gave up its slot is not selected until its
 * client has read the buffered events.
 */
export function selectNextPrompt(
  queue: readonly QueuedPrompt[],
  shares: SlotShares,
): QueuedPrompt | undefined {
  const ready = listReady(queue, shares)
  const foreground = ready.filter(({ job }) => !job.background)
  const candidates = foreground.length > 0 ? foreground : ready
  const counts = countRunning(shares.running)
  const rankOf = ({ job }: QueuedPrompt) => (counts.get(job.tenant) ?? 0) / job.weight
  return candidates.reduce<QueuedPrompt | undefined>((best, one) => {
    if (!best) return one
    const difference =
      rankOf(one) - rankOf(best) ||
      shares.clock.orderTimeOf(one.job.tenant) - shares.clock.orderTimeOf(best.job.tenant)
    return difference < 0 ? one : best
  }, undefined)
}

/** Prompts that may get the next slot. */
export const listReady = (queue: readonly QueuedPrompt[], shares: SlotShares): readonly QueuedPrompt[] =>
  queue.filter((prompt) => isReady(prompt) && canTakeSlot(prompt.job, shares))

/**
 * Lists the sequences that may give up a slot for the prompt, the best choice first. Background and paused
 * sequences give way to every foreground prompt. Other sequences give way to prompts of other tenants, so that
 * no tenant keeps more slots than its share.
 */
export function listVictims(next: QueuedPrompt, shares: SlotShares): readonly RunningSequence[] {
  const preemptible = shares.running.filter(isPreemptible).reverse()
  const yielding = next.job.background
    ? []
    : preemptible.filter((running) => running.job.background || isPaused(running))
  if (yielding.length > 0) return yielding
  if (hasOutput(next) && !shares.canEndTurn) return []
  return listAhead(next, preemptible, shares)
}

/** Sequences of the tenants that are too far ahead, those of the tenant with the most slots first. */
function listAhead(
  next: QueuedPrompt,
  preemptible: readonly RunningSequence[],
  { running, clock, promptLeadMs, turnLeadMs }: SlotShares,
): readonly RunningSequence[] {
  const { tenant, weight, background } = next.job
  const counts = countRunning(running)
  const rankOf = (tenant: string, weight: number, more = 0) => ((counts.get(tenant) ?? 0) + more) / weight
  const now = performance.now()
  const leadFor = ({ sampledCount }: RunningSequence): number => {
    if (hasOutput(next)) return turnLeadMs
    return sampledCount < newAnswerTokens ? newAnswerLeadMs : promptLeadMs
  }
  const isAhead = (victim: RunningSequence): boolean => {
    const { job, keepsSlotUntil } = victim
    const lead = (clock.timeOf(job.tenant) - clock.timeOf(tenant)) * Math.max(weight, job.weight)
    return (
      job.tenant !== tenant &&
      job.background === background &&
      keepsSlotUntil <= now &&
      lead >= leadFor(victim) &&
      // A tenant without a slot takes turns. Otherwise, slots move only towards equal shares.
      (!counts.has(tenant) || rankOf(tenant, weight, 1) < rankOf(job.tenant, job.weight))
    )
  }
  return preemptible
    .filter(isAhead)
    .sort(
      ({ job: a }, { job: b }) =>
        rankOf(b.tenant, b.weight) - rankOf(a.tenant, a.weight) ||
        clock.timeOf(b.tenant) - clock.timeOf(a.tenant),
    )
}

export const hasOutput = ({ suspended }: QueuedPrompt): boolean => suspended?.lastToken !== undefined

/**
 * Whether enough slots remain without this job. Of several slots, sequences that cannot give up theirs leave one to
 * all others, and those of one tenant leave another one to those of another tenant. Foreground prompts do not wait
 * for background sequences, which may be paused.
 */
function canTakeSlot(job: GenerationJob, { running, slotCount, canSuspend }: SlotShares): boolean {
  if (slotCount === 1 || canSuspend(job)) return true
  const kept = running.filter((one) => !canSuspend(one.job) && (job.background || !one.job.background))
  const own = kept.filter((one) => one.job.tenant === job.tenant)
  return kept.length < slotCount - 1 && own.length < Math.max(1, slotCount - 2)
}

/** Number of running sequences by tenant. */
function countRunning(running: readonly RunningSequence[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { job } of running) counts.set(job.tenant, (counts.get(job.tenant) ?? 0) + 1)
  return counts
}

/**
 * Turns a sequence that gives up its slot into a queued prompt.
 * @param saved its KV state. If absent, its output so far becomes a part of the prompt and is not emitted again
 */
export function toQueuedPrompt(
  { job, slot, sampler, sampledCount, plan, lastToken, hasPrefilled, settle }: RunningSequence,
  saved: Pick<SuspendedSequence, 'state' | 'suspendMs'>,
): QueuedPrompt {
  const suspended = { sampler, sampledCount, plan, lastToken, hasPrefilled, ...saved }
  return saved.state
    ? { job, settle, suspended }
    : { job: withReplay(job, slot.tokens, lastToken), settle, suspended }
}

/** Appends the output so far to the prompt. Without output, the prompt does not change. */
export const withReplay = (
  job: GenerationJob,
  evaluated: RunningSequence['slot']['tokens'],
  lastToken: RunningSequence['lastToken'],
): GenerationJob => (lastToken === undefined ? job : { ...job, prompt: [...evaluated, lastToken] })
