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
  /** Breakpoints of the prompt, except those inside the first chunk. */
  readonly breakpoints: readonly Breakpoint[]
  readonly plan: CachePlan
  /** Time of the last prefill, as a counter over the prefill pieces of all sequences. */
  prefilledAt: number
  /** Whether a part of the prompt has been evaluated since the sequence got the slot. */
  hasPrefilled: boolean
  /** The last sampled token, which is not evaluated yet. Absent during prefill. */
  lastToken: Token | undefined
  /** Time of the last sample, in ms. */
  sampledAt: number
  sampledCount: number
  /** Whether the last token of the output has been sampled. The slot is released after the step. */
  isFinished: boolean
  /** Whether the caller has received the outcome. */
  isSettled: boolean
}

/** A job that waits for a slot. */
export interface QueuedPrompt extends Pick<RunningSequence, 'job' | 'settle'> {
  /** State with which a sequence that lost its slot continues later. */
  readonly interrupted?: Pick<RunningSequence, 'sampler' | 'sampledCount' | 'plan'>
}

/** Tokens of one sequence in a decode or prefill step. */
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

/** Whether prefill has not begun and all uncached tokens fit into one chunk. */
export const isShortPrefill = ({ job, slot, hasPrefilled }: RunningSequence, chunkSize: number): boolean =>
  !hasPrefilled && job.prompt.length - slot.tokens.length <= chunkSize

/**
 * Whether the sequence may lose its slot, so that its tokens are evaluated again later. Only background
 * sequences and paused sequences may lose their slots. Even such a sequence keeps its slot if its
 * deterministic output has begun, since prefill of this output would change the logits. It also keeps its
 * slot if its prompt logprobs have been sent, since they would be sent twice.
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
