import { isPreemptible, type QueuedPrompt, type RunningSequence } from './running-sequence.ts'

/**
 * Selects the prompt that gets the next slot: the oldest prompt of the tenant with the fewest running
 * sequences. Foreground prompts precede background prompts. A preempted sequence is not selected until its
 * client has read the buffered events.
 */
export function selectNextPrompt(
  queue: readonly QueuedPrompt[],
  running: readonly RunningSequence[],
): QueuedPrompt | undefined {
  const ready = queue.filter(({ job, interrupted }) => !interrupted || !job.isBackpressured?.())
  const foreground = ready.filter(({ job }) => !job.background)
  const candidates = foreground.length > 0 ? foreground : ready
  const countRunning = ({ job: { tenant } }: QueuedPrompt): number =>
    running.filter(({ job }) => job.tenant === tenant).length
  return candidates.reduce<QueuedPrompt | undefined>(
    (best, one) => (best && countRunning(best) <= countRunning(one) ? best : one),
    undefined,
  )
}

/** Selects the sequence that loses its slot: the youngest sequence that may be preempted. */
export const selectVictim = (running: readonly RunningSequence[]): RunningSequence | undefined =>
  running.findLast(isPreemptible)

/**
 * Turns a preempted sequence into a queued prompt. Its output so far becomes a part of the prompt and is not
 * emitted again.
 */
export function toQueuedPrompt({
  job,
  slot,
  sampler,
  sampledCount,
  plan,
  lastToken,
  settle,
}: RunningSequence): QueuedPrompt {
  const prompt = lastToken === undefined ? job.prompt : [...slot.tokens, lastToken]
  return { job: { ...job, prompt }, settle, interrupted: { sampler, sampledCount, plan } }
}
