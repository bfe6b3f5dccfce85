import type { Token } from 'node-llama-cpp'
import type { CompiledGrammar, Logprobs } from './decoding/decoder.ts'
import type { SamplingParams } from './decoding/sampling.ts'
import type { Breakpoint, CacheUsage } from './kv-cache/cache-plan.ts'

/** One output to generate. */
export interface GenerationJob {
  readonly prompt: readonly Token[]
  /** Lengths of the prompt at which the KV state is cached. Ascending, and shorter than the prompt. */
  readonly breakpoints?: readonly Breakpoint[]
  readonly sampling: SamplingParams
  readonly grammar?: CompiledGrammar | undefined
  /** Whether the same request has to give the same output each time. */
  readonly isDeterministic: boolean
  /** Maximum length of the output in tokens. With 0, only the prompt is evaluated. */
  readonly maxTokens: number
  readonly tenant: string
  /** Whether it gives way to foreground jobs. */
  readonly background: boolean
  readonly signal: AbortSignal
  /** Whether the client has enough to read. Then the job pauses, and its slot may go to another. */
  readonly isBackpressured?: (() => boolean) | undefined
  /**
   * Called when the job gets its slot.
   * @param cached tokens that are reused, and tokens that will be cached
   * @param divergence length in tokens that the prompt shares with the cached prompt closest to it
   */
  onStart(cached: CacheUsage, divergence?: number): void
  /** Called when fewer tokens are cached than announced. */
  onCacheChange?(cached: CacheUsage): void
  /** Gets the logprobs of the prompt's tokens, piece by piece from the second token on. Nothing of the prompt is reused then. */
  readonly onPromptLogprobs?: ((logprobs: readonly Logprobs[]) => void) | undefined
  /** Called beside the next step. `false` ends the output. */
  onToken(token: Token, logprobs?: Logprobs): boolean
}

/** `end`: at an end-of-generation token. `limit`: at `maxTokens`. `stopped`: `onToken` returned `false`. `aborted`: by the signal. */
export type RunOutcome = 'end' | 'limit' | 'stopped' | 'aborted'

export interface Runner {
  /** Rejects with an `LlmError` when the model fails. */
  run(job: GenerationJob): Promise<RunOutcome>
  /** Continues after a client has left or read on. */
  wake(): void
  /** Resolves when no job is running. */
  whenIdle(): Promise<void>
}
