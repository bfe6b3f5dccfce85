import type { Token } from 'node-llama-cpp'
import type { ProcessActivity } from '../ipc/messages.ts'
import type { CompiledGrammar, Logprobs } from './decoding/decoder.ts'
import type { SamplingParams } from './decoding/sampling.ts'
import type { Breakpoint, CacheUsage } from './kv-cache/cache-plan.ts'

/** The part of a job that determines which cached states it can use. */
export type CacheablePrompt = Pick<GenerationJob, 'tenant' | 'prompt' | 'breakpoints' | 'onPromptLogprobs'>

/** A prompt to evaluate and the output to generate for it. */
export interface GenerationJob {
  readonly prompt: readonly Token[]
  /** Prompt prefixes whose KV state is cached, in ascending order. Each is shorter than the prompt. */
  readonly breakpoints?: readonly Breakpoint[]
  readonly sampling: SamplingParams
  readonly grammar?: CompiledGrammar | undefined
  /** Whether the same request has to give the same output each time. */
  readonly isDeterministic: boolean
  /** Maximum length of the output in tokens. With 0, only the prompt is evaluated. */
  readonly maxTokens: number
  /** Jobs of one tenant share cached prompts, and their part of the model's time. */
  readonly tenant: string
  /** Part of the model's time that the tenant gets, relative to other tenants. */
  readonly weight: number
  /** Whether the job gives way to foreground jobs. */
  readonly background: boolean
  readonly signal: AbortSignal
  /**
   * Whether the client has too much unread output. Then the job pauses, and another job may take its slot. A
   * job that has given up its slot pauses until most of the output has been read.
   */
  readonly isBackpressured?: ((now: { readonly isSuspended: boolean }) => boolean) | undefined
  /**
   * Called when the job gets its slot.
   * @param cached numbers of tokens that are reused and that will be cached
   * @param divergence number of tokens after which the prompt diverges from the most similar prompt in a slot
   */
  onStart(cached: CacheUsage, divergence?: number): void
  /** Called when fewer tokens can be cached than `onStart` reported. */
  onCacheChange?(cached: CacheUsage): void
  /**
   * Called after each prefill step, in the same way as `onToken`. The evaluation of a prompt may begin again, if the job
   * has given up its slot.
   * @param evaluated number of tokens in the KV state
   */
  readonly onPrefill?: ((evaluated: number) => void) | undefined
  /**
   * Receives the logprobs of the prompt in pieces. They begin with the second token, since the first one has
   * no logprob. If this callback is set, no cached prefix is reused.
   */
  readonly onPromptLogprobs?: ((logprobs: readonly Logprobs[]) => void) | undefined
  /**
   * Called for each output token, while the next decode or prefill step runs. The output ends when this
   * callback returns `false`.
   */
  onToken(token: Token, logprobs?: Logprobs): boolean
}

/**
 * Why a run ended. `end`: the model sampled an end-of-generation token. `limit`: the output reached
 * `maxTokens`. `stopped`: `onToken` returned `false`. `aborted`: the signal aborted.
 */
export type RunOutcome = 'end' | 'limit' | 'stopped' | 'aborted'

export type RunnerActivity = Omit<ProcessActivity, 'memoryBytes'>

const none = { states: 0, bytes: 0 }
/** The activity of a runner that caches nothing. */
export const nothingCached: Pick<RunnerActivity, 'cachedStates' | 'cachedStateBytes' | 'evicted'> = {
  cachedStates: 0,
  cachedStateBytes: 0,
  evicted: { expired: none, memory: none, deleted: none },
}

export interface Runner {
  /** Rejects with an `LlmError` when the model fails. */
  run(job: GenerationJob): Promise<RunOutcome>
  /** Whether the model takes steps, or will do so after the next event. */
  readonly isDecoding: boolean
  readonly activity: RunnerActivity
  /** Resumes decoding after a client has cancelled a call, disconnected or read more output. */
  wake(): void
  /**
   * Deletes the KV states of a tenant, except those of running jobs, after the current step. Resolves with their
   * number.
   */
  deleteStates(tenant: string): Promise<number>
  /** Number of tokens of a prompt that are cached for a breakpoint of an earlier job of the tenant. */
  cachedLength(prompt: CacheablePrompt): number
  /** Resolves when no job is running. */
  whenIdle(): Promise<void>
}
