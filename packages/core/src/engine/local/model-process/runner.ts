/** Answers, as they are asked for; and what makes them. */
import type { Token } from 'node-llama-cpp'
import type { CompiledGrammar, Logprobs } from './decoding/decoder.ts'
import type { SamplingParams } from './decoding/sampling.ts'
import type { Breakpoint, CacheUsage } from './kv-cache/cache-plan.ts'

/** One answer. */
export interface GenerationJob {
  readonly prompt: readonly Token[]
  /** Behind which of its tokens the state is kept for other calls; ascending, the last before its last token. */
  readonly breakpoints?: readonly Breakpoint[]
  readonly sampling: SamplingParams
  /** What the answer is held to. */
  readonly grammar?: CompiledGrammar | undefined
  /** The same answer is expected each time. */
  readonly isDeterministic: boolean
  /** How many tokens at most; with 0 its prompt is read. */
  readonly maxTokens: number
  readonly tenant: string
  /** It makes room for those who wait for their answer. */
  readonly background: boolean
  readonly signal: AbortSignal
  /** Whether its reader has enough to read. Then it pauses, and makes room for others like one that can wait. */
  readonly isBackpressured?: (() => boolean) | undefined
  /**
   * It has a place; so much of its prompt need not be read again, and so much is going to be kept.
   * @param divergence behind so many tokens it goes another way than the prompt that it has most in common with
   */
  onStart(cached: CacheUsage, divergence?: number): void
  /** What comes of that, where it comes otherwise. */
  onCacheChange?(cached: CacheUsage): void
  /** Hears how likely the prompt's tokens were, piece by piece from the second token on. All of it is read for that. */
  readonly onPromptLogprobs?: ((logprobs: readonly Logprobs[]) => void) | undefined
  /** Called while the model works on. `false`: it is enough. */
  onToken(token: Token, logprobs?: Logprobs): boolean
}

/** `end`: the model said so. `stopped`: `onToken` returned `false`. `aborted`: by the signal. */
export type RunOutcome = 'end' | 'limit' | 'stopped' | 'aborted'

export interface Runner {
  /** Resolves when the answer has ended. Rejects with an `LlmError` when the model fails. */
  run(job: GenerationJob): Promise<RunOutcome>
  /** Somebody has left, or has read on. */
  wake(): void
  /** Resolves when the model does nothing. */
  whenIdle(): Promise<void>
}
