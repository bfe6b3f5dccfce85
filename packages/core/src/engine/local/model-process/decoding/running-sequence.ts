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
  /** Time of its last prefill, counted in chunks of all sequences. */
  prefilledAt: number
  /** Whether a part of its prompt was evaluated since it got the slot. */
  hasPrefilled: boolean
  /** The token that was sampled last and is not evaluated yet. Absent during prefill. */
  lastToken: Token | undefined
  /** Time of the last sample, in ms. */
  sampledAt: number
  sampledCount: number
  /** Its last token is sampled. The slot is released after the step. */
  isFinished: boolean
  /** The caller has the outcome. */
  isSettled: boolean
}

/** A job that waits for a slot. */
export interface QueuedPrompt extends Pick<RunningSequence, 'job' | 'settle'> {
  /** State of a preempted sequence. */
  readonly interrupted?: Pick<RunningSequence, 'sampler' | 'sampledCount' | 'plan'>
}

/** Tokens of one sequence in a step. */
export interface StepInput {
  readonly running: RunningSequence
  readonly tokens: readonly Token[]
  /** Whether a token is sampled after the last of them. */
  readonly isSampling: boolean
  readonly targets?: PromptTargets | undefined
}

export const isUnfinished = ({ isFinished }: RunningSequence): boolean => !isFinished

/** Whether decoding pauses until the client has read more. */
export const isPaused = ({ job, lastToken }: RunningSequence): boolean =>
  lastToken !== undefined && job.isBackpressured?.() === true

/** Kernels for one row sum in another order than kernels for several, which now and then changes the token. */
export const isDecodedAlone = ({ job }: RunningSequence): boolean => job.isDeterministic

/** Whether nothing of the prompt is evaluated yet, and one chunk is enough for the rest of it. */
export const isShortPrefill = ({ job, slot, hasPrefilled }: RunningSequence, chunkSize: number): boolean =>
  !hasPrefilled && job.prompt.length - slot.tokens.length <= chunkSize

/**
 * Background and paused sequences give up their slots. A deterministic output is no candidate: prefill of its own tokens
 * would change the logits. Neither is a prompt whose logprobs are partly sent, since they would be sent twice.
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
