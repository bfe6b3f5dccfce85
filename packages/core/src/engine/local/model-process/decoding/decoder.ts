/** What the scheduler needs of a model: steps, draws, and the states of its sequences. */
import type { LlamaGrammarEvaluationState, Token } from 'node-llama-cpp'
import type { SamplingParams } from './sampling.ts'

/** One call at a time. */
export interface Decoder {
  /** How many sequences there are. */
  readonly sequenceCount: number
  /** Whether the end of a sequence can be forgotten: recurrent models hold one state, others only what is in their window. */
  readonly canTruncate: boolean
  /** Prompt tokens that are evaluated at once. Calibration may lower it. */
  chunkSize: number
  /** So many chunks may be read at once, and sums come out as if they were read one after the other. */
  readonly chunksAtOnce: number
  /**
   * Puts the pieces through the model, ascending by sequence, and draws a token behind each that has a sampler.
   * Rejects when the model fails; a draw that fails, or odds that are not known, is an error among the tokens.
   */
  decode(entries: readonly BatchEntry[]): Promise<readonly (Token | Error | undefined)[]>
  /** Keeps the first tokens of a sequence. `false`: not all of them are there. */
  truncate(sequence: number, keep: number): boolean
  /** Whether all tokens of a sequence are still held, so that its end can be forgotten. */
  isComplete(sequence: number): boolean
  /** Saves the state of a sequence, and says how many bytes that are. */
  save(sequence: number, tokens: readonly Token[], file: string): Promise<number>
  /** Whether a loaded state of so many tokens lies in memory as it did: else sums come out a little different. */
  isRestoreExact(length: number): boolean
  /** Loads a saved state into a sequence, and says how many tokens it was made from. Damaged ones end the process. */
  load(sequence: number, file: string): Promise<number>
  /** From the next step on: for one token of each answer, and for prompts. Never for a token that has to be repeatable. */
  setThreads(decodeThreads: number, prefillThreads: number): void
  createSampler(params: SamplingParams, prompt: readonly Token[], grammar?: CompiledGrammar): Sampler
  /** Whether a token ends an answer. */
  isEog(token: Token): boolean
}

export interface BatchEntry {
  readonly sequence: number
  /** Of its first token. */
  readonly position: number
  readonly tokens: readonly Token[]
  readonly sampler?: Sampler | undefined
  readonly targets?: PromptTargets | undefined
  /** Has to come out the same each time, also with other numbers of threads for answers. */
  readonly isDeterministic: boolean
}

/** What follows the tokens of a piece in its prompt, from the first on, for who is asked how likely that was. */
export interface PromptTargets {
  readonly tokens: readonly Token[]
  readonly sampler: Sampler
}

export interface Sampler {
  /** Of the token that it drew last, where the draw asks for them. */
  readonly lastLogprobs?: Logprobs | undefined
  /** Of the followers that it was asked for last. */
  readonly targetLogprobs?: readonly Logprobs[] | undefined
  dispose(): void
}

/** Natural logarithms, of what the model says with biases, before all else that shapes the draw. */
export interface Logprobs {
  readonly logprob: number
  /** Of the likeliest tokens, in order. */
  readonly top: readonly (readonly [token: Token, logprob: number])[]
}

/** Output constraint, compiled by llama.cpp. */
export interface CompiledGrammar {
  /** State before the first output token. */
  createState(): LlamaGrammarEvaluationState
}
