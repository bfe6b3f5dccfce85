import type { Token } from 'node-llama-cpp'
import type { LlmError } from '../../../../errors.ts'
import type { Breakpoint, CachePlan } from '../kv-cache/cache-plan.ts'
import { hasPromptLogprobs } from '../kv-cache/prompt-cache.ts'
import type { Slot } from '../kv-cache/slots.ts'
import type { GenerationJob, RunOutcome } from '../runner.ts'
import type { BatchEntry, PromptTargets, Sampler } from './decoder.ts'

/** A job that has a slot. */
export interface RunningSequence {
  readonly job: GenerationJob
  readonly slot: Slot
  readonly sampler: Sampler
  readonly settle: (how: RunOutcome | LlmError) => void
  /** Breakpoints of the prompt. */
  readonly breakpoints: readonly Breakpoint[]
  readonly plan: CachePlan
  /** Logical time of its last prefill, counted in chunks of all sequences. */
  prefilledAt: number
  /** Whether a part of its prompt has been evaluated since it got the slot. */
  hasPrefilled: boolean
  /** The last sampled token, which is not evaluated yet. Absent during prefill. */
  lastToken: Token | undefined
  /** Time of the last sample, in ms. */
  sampledAt: number
  sampledCount: number
  /** Whether its last token has been sampled. The slot is released after the step. */
  isFinished: boolean
  /** Whether the caller has received the outcome. */
  isSettled: boolean
}

/** A job that waits for a slot. */
export interface QueuedPrompt extends Pick<RunningSequence, 'job' | 'settle'> {
  /** State that a preempted sequence keeps in the queue. */
  readonly interrupted?: Pick<RunningSequence, 'sampler' | 'sampledCount' | 'plan'>
}

/** Tokens of one sequence in a step. */
export interface StepInput {
  readonly running: RunningSequence
  readonly tokens: readonly Token[]
  /** Whether a token is sampled after the last of `tokens`. */
  readonly isSampling: boolean
  readonly targets?: PromptTargets | undefined
}

export const isUnfinished = ({ isFinished }: RunningSequence): boolean => !isFinished

/** Whether decoding pauses until the client has read more. */
export const isPaused = ({ job, lastToken }: RunningSequence): boolean =>
  lastToken !== undefined && job.isBackpressured?.() === true

/**
 * Whether no other sequence may share its decode steps. Kernels for several rows sum in another order than
 * kernels for one row. This can change a sampled token.
 */
export const isDecodedAlone = ({ job }: RunningSequence): boolean => job.isDeterministic

/** Whether prefill has not begun, and one chunk is enough for all tokens that are not cached. */
export const isShortPrefill = ({ job, slot, hasPrefilled }: RunningSequence, chunkSize: number): boolean =>
  !hasPrefilled && job.prompt.length - slot.tokens.length <= chunkSize

/**
 * Whether the sequence may lose its slot: background and paused sequences may. A deterministic output may
 * not, since prefill of its tokens would change the logits. A prompt whose logprobs are partly sent may not,
 * since they would be sent twice.
 */
export const isPreemptible = (running: RunningSequence): boolean => {
  const { job, lastToken, hasPrefilled } = running
  const losesState =
    (job.isDeterministic && lastToken !== undefined) || (hasPromptLogprobs(job) && hasPrefilled)
  return isUnfinished(running) && (job.background || isPaused(running)) && !losesState
}

export const toBatchEntry = ({
  running: { job, slot, sampler },
  tokens,
  isSampling,
  targets,
}: StepInput): BatchEntry => ({
  sequence: slot.id,
  position: slot.tokens.length,
  tokens,
  sampler: isSampling ? sampler : undefined,
  ...(targets && { targets }),
  isDeterministic: job.isDeterministic,
})
