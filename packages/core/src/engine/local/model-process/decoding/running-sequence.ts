import type { Token } from 'node-llama-cpp'
import type { LlmError } from '../../../../errors.ts'
import type { Breakpoint, CachePlan } from '../kv-cache/cache-plan.ts'
import { hasPromptLogprobs, type SuspendedState } from '../kv-cache/prompt-cache.ts'
import type { Slot } from '../kv-cache/slots.ts'
import type { GenerationJob, RunOutcome } from '../runner.ts'
import type { BatchEntry, PromptTargets, Sampler } from './decoder.ts'

/** A job that has a slot. */
export interface RunningSequence {
  readonly job: GenerationJob
  readonly slot: Slot
  readonly sampler: Sampler
  readonly settle: (how: RunOutcome | LlmError) => void
  /** Breakpoints of the prompt, except those inside the first chunk. */
  readonly breakpoints: readonly Breakpoint[]
  readonly plan: CachePlan
  /** Time of the last prefill, or of the start, in ms. */
  prefilledAt: number
  /** Whether a part of the prompt has been evaluated since the sequence got the slot. */
  hasPrefilled: boolean
  /** The last sampled token, which is not evaluated yet. Absent during prefill. */
  lastToken: Token | undefined
  /** Time of the last sample, in ms. */
  sampledAt: number
  sampledCount: number
  /** Duration of the last decode step, in ms. */
  stepMs: number
  /**
   * Until this time, in ms, the sequence keeps its slot. A new sequence keeps it until its first token. Another
   * one keeps it for at least as long as it took to give up the last one and to continue.
   */
  keepsSlotUntil: number
  /** Start of the evaluation that replaces a lost state, in ms. Absent when output has continued. */
  replayedFrom: number | undefined
  /** Until this time, in ms, the sequence keeps its slot if it needs its state, which could not be saved. */
  pinnedUntil: number
  /** Length in tokens at which the state was last saved, or could not be saved. */
  savedLength: number
  /** Whether the last token of the output has been sampled. The slot is released after the step. */
  isFinished: boolean
  /** Whether the caller has received the outcome. */
  isSettled: boolean
}

/** A job that waits for a slot. */
export interface QueuedPrompt extends Pick<RunningSequence, 'job' | 'settle'> {
  readonly suspended?: SuspendedSequence
}

/** A sequence that gave up its slot, and waits for another one to continue. */
export interface SuspendedSequence
  extends Pick<RunningSequence, 'sampler' | 'sampledCount' | 'plan' | 'lastToken' | 'hasPrefilled'> {
  /** If absent, the KV state is lost. The output so far is then a part of the prompt. */
  readonly state: SuspendedState | undefined
  /** Duration of saving the state, in ms. */
  readonly suspendMs: number
}

/** Tokens of one sequence in a decode or prefill step. */
export interface StepInput {
  readonly running: RunningSequence
  readonly tokens: readonly Token[]
  /** Tokens that may follow. The step verifies them. */
  readonly guesses?: readonly Token[]
  /** Whether a token is sampled after the last of `tokens`. */
  readonly isSampling: boolean
  readonly targets?: PromptTargets | undefined
}

/**
 * Whether the prompt may get a slot. A sequence that gave up its slot waits until its client has read the
 * buffered events.
 */
export const isReady = ({ job, suspended }: QueuedPrompt): boolean =>
  !(suspended && job.isBackpressured?.({ isSuspended: true }))

export const isUnfinished = ({ isFinished }: RunningSequence): boolean => !isFinished

/** Whether decoding pauses until the client has read more. */
export const isPaused = ({ job, lastToken }: RunningSequence): boolean =>
  lastToken !== undefined && job.isBackpressured?.({ isSuspended: false }) === true

/**
 * Whether no other sequence may share its decode steps. Kernels for several rows sum in another order than
 * kernels for one row. This can change a sampled token.
 */
export const isDecodedAlone = ({ job }: RunningSequence): boolean => job.isDeterministic

/** Whether prefill has not begun and all uncached tokens fit into one chunk. */
export const isShortPrefill = ({ job, slot, hasPrefilled }: RunningSequence, chunkSize: number): boolean =>
  !hasPrefilled && job.prompt.length - slot.tokens.length <= chunkSize

/**
 * Whether the sequence can continue only with its KV state. If output is deterministic and has begun, prefill
 * of its tokens would change the logits. If logprobs of the prompt have been sent, they would be sent twice.
 */
export const needsState = ({
  job,
  lastToken,
  hasPrefilled,
}: Pick<RunningSequence, 'job' | 'lastToken' | 'hasPrefilled'>): boolean =>
  (job.isDeterministic && lastToken !== undefined) || (hasPromptLogprobs(job) && hasPrefilled)

/** Whether the sequence may give up its slot. */
export const isPreemptible = (running: RunningSequence): boolean =>
  isUnfinished(running) && !(running.pinnedUntil > performance.now() && needsState(running))

export const toBatchEntry = ({
  running: { job, slot, sampler },
  tokens,
  guesses,
  isSampling,
  targets,
}: StepInput): BatchEntry => ({
  sequence: slot.id,
  position: slot.tokens.length,
  tokens,
  guesses,
  sampler: isSampling ? sampler : undefined,
  ...(targets && { targets }),
  isDeterministic: job.isDeterministic,
})

/** Reports the outcome, unless one was reported before. The slot is released before the next step. */
export function finish(running: RunningSequence, outcome: RunOutcome | LlmError): void {
  if (!running.isSettled) running.settle(outcome)
  running.isFinished = true
  running.isSettled = true
}
