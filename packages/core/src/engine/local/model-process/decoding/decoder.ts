/** A model as the scheduler sees it: decoding, sampling, and the KV state of sequences. */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { SamplingParams } from './sampling.ts'

/** Two methods of a decoder must not run at the same time. */
export interface Decoder {
  readonly sequenceCount: number
  /** Whether sequences can be truncated. Recurrent state and sliding-window attention prevent truncation. */
  readonly canTruncate: boolean
  /**
   * Number of tokens that every layer attends to. `Infinity` without a sliding window. The state of a longer
   * sequence has another memory layout when it is restored, so logits differ slightly.
   */
  readonly windowSize: number
  /** Prompts are evaluated in chunks of this many tokens. Calibration may lower the number. */
  chunkSize: number
  /** Number of chunks that one prefill step may evaluate without changing the logits. */
  readonly chunksAtOnce: number
  /**
   * Evaluates the entries, and samples a token for each entry that has a sampler. An entry with guesses gets a further
   * token for each right guess. Entries must ascend by `sequence`. Rejects if evaluation fails. If sampling fails or
   * a logprob is not finite, the last sample of the entry is an `Error`.
   */
  decode(entries: readonly BatchEntry[]): Promise<readonly (readonly (Sample | Error)[])[]>
  /** Keeps the first `keep` tokens of a sequence. Returns `false` if some of these tokens are gone. */
  truncate(sequence: number, keep: number): boolean
  /** Whether the KV cache still has all tokens of a sequence. Truncation requires this. */
  isComplete(sequence: number): boolean
  /** Saves the state of a sequence and returns its size in bytes. */
  save(sequence: number, tokens: readonly Token[], file: string): Promise<number>
  /**
   * Loads a saved state into a sequence and returns its number of tokens. A damaged file ends the process.
   */
  load(sequence: number, file: string): Promise<number>
  /**
   * Number of tokens from which a copy of their state is faster than their evaluation. `Infinity` if a copy cannot be
   * truncated.
   */
  readonly minCopyLength: number
  /**
   * Replaces the state of a sequence by that of another one. The memory is copied at the beginning of the next step, so
   * the copy must not be saved, nor its sequence loaded, before that step.
   */
  copy(from: number, to: number): Promise<unknown>
  /**
   * Sets the thread counts from the next step on. Deterministic sequences always decode with one fixed count.
   */
  setThreads(decodeThreads: number, prefillThreads: number): void
  createSampler(params: SamplingParams, prompt: readonly Token[], grammar?: CompiledGrammar): Sampler
  /** Whether a token ends the output. */
  isEog(token: Token): boolean
}

export interface BatchEntry {
  readonly sequence: number
  /** Position of the first of `tokens` in the sequence. */
  readonly position: number
  readonly tokens: readonly Token[]
  /**
   * Tokens that may follow `tokens`. Those that were sampled are right. After the step, the state contains all guesses,
   * also the wrong ones.
   */
  readonly guesses?: readonly Token[] | undefined
  readonly sampler?: Sampler | undefined
  readonly targets?: PromptTargets | undefined
  /** Whether logits must not depend on the number of threads. */
  readonly isDeterministic: boolean
}

/** Tokens whose logprobs are requested: for each token of a prompt piece, the token that follows it. */
export interface PromptTargets {
  readonly tokens: readonly Token[]
  readonly sampler: Sampler
}

/** A sampled token, and its logprobs if they are requested. */
export interface Sample {
  readonly token: Token
  readonly logprobs?: Logprobs | undefined
}

export interface Sampler {
  /** Logprobs of the prompt targets of the last step. */
  readonly targetLogprobs?: readonly Logprobs[] | undefined
  dispose(): void
}

/** Natural logarithms of the probabilities after logit bias and before every other sampling step. */
export interface Logprobs {
  readonly logprob: number
  /** The most likely tokens, in descending order. */
  readonly top: readonly (readonly [token: Token, logprob: number])[]
}

/** Output constraint, compiled by llama.cpp. */
export interface CompiledGrammar {
  /** Creates the grammar state for the start of an output. */
  createState(): LlamaGrammarEvaluationState
}
