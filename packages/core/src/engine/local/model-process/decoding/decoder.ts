/** What the scheduler needs of a model: decoding, sampling, and the KV state of sequences. */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { SamplingParams } from './sampling.ts'

/** Takes one call at a time. */
export interface Decoder {
  readonly sequenceCount: number
  /** Whether a sequence can be truncated. Not with recurrent state, nor with sliding-window attention. */
  readonly canTruncate: boolean
  /** Prompt tokens that are evaluated at once. Calibration may lower it. */
  chunkSize: number
  /** Number of chunks that can be evaluated at once with the same logits as one after the other. */
  readonly chunksAtOnce: number
  /**
   * Evaluates the entries, ascending by sequence, and samples a token after each that has a sampler.
   * Rejects when evaluation fails. A failed sample, or logprobs that are not finite, is an error among the tokens.
   */
  decode(entries: readonly BatchEntry[]): Promise<readonly (Token | Error | undefined)[]>
  /** Keeps the first tokens of a sequence. `false` where some of them are gone. */
  truncate(sequence: number, keep: number): boolean
  /** Whether the KV cache has all tokens of a sequence, so that it can be truncated. */
  isComplete(sequence: number): boolean
  /** Saves the state of a sequence and returns its size in bytes. */
  save(sequence: number, tokens: readonly Token[], file: string): Promise<number>
  /** Whether a restored state of this many tokens has the same memory layout. Else logits differ slightly. */
  isRestoreExact(length: number): boolean
  /** Loads a saved state into a sequence and returns its number of tokens. A damaged file ends the process. */
  load(sequence: number, file: string): Promise<number>
  /** Takes effect with the next step. Deterministic sequences decode with a fixed number instead. */
  setThreads(decodeThreads: number, prefillThreads: number): void
  createSampler(params: SamplingParams, prompt: readonly Token[], grammar?: CompiledGrammar): Sampler
  /** Whether a token ends the output. */
  isEog(token: Token): boolean
}

export interface BatchEntry {
  readonly sequence: number
  /** Position of the first token. */
  readonly position: number
  readonly tokens: readonly Token[]
  readonly sampler?: Sampler | undefined
  readonly targets?: PromptTargets | undefined
  /** Whether logits must not depend on the number of threads. */
  readonly isDeterministic: boolean
}

/** The next token after each token of a prompt piece, whose logprob is wanted. */
export interface PromptTargets {
  readonly tokens: readonly Token[]
  readonly sampler: Sampler
}

export interface Sampler {
  /** Logprobs of the last sampled token, if requested. */
  readonly lastLogprobs?: Logprobs | undefined
  /** Logprobs of the last prompt targets. */
  readonly targetLogprobs?: readonly Logprobs[] | undefined
  dispose(): void
}

/** Natural logarithms of the probabilities after logit bias and before every other sampling step. */
export interface Logprobs {
  readonly logprob: number
  /** The most likely tokens, in order. */
  readonly top: readonly (readonly [token: Token, logprob: number])[]
}

/** Output constraint, compiled by llama.cpp. */
export interface CompiledGrammar {
  /** State before the first output token. */
  createState(): LlamaGrammarEvaluationState
}
