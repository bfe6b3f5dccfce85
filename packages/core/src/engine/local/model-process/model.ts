/** A loaded model as the rest of this folder sees it. `llama/` implements it with node-llama-cpp. */
import type { Token } from 'node-llama-cpp'
import type { ChatTemplate } from '../../../template/jinja.ts'
import type { CompiledGrammar } from './decoding/decoder.ts'
import type { PoolingContexts } from './pooling.ts'
import type { Runner } from './runner.ts'

export interface RuntimeModel extends ModelVocabulary, ModelBackend {
  /** Name in the app. */
  readonly name: string
  readonly fingerprint: string
  readonly contextSize: number
  /** Memory for weights and contexts, and the part of it on a graphics card. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** Part of it that is mapped from the model file: the system may drop and reread it. */
  readonly mappedBytes: number
  /** Settings that could not be met, for the app's log. */
  readonly notes: readonly string[]
}

export interface ModelVocabulary {
  readonly vocabularySize: number
  readonly template: ChatTemplate
  /** Token that every prompt begins with, if the model wants one. */
  readonly bos: Token | undefined
  /** Token that every embedded text ends with, if the model wants one. */
  readonly end: Token | undefined
  /** Token that takes the place of an empty prompt. */
  readonly start: Token | undefined
  /** Token that ends an assistant message. */
  readonly eot: Token | undefined
  /** Fill-in-the-middle tokens. Absent where the model was not trained for it. */
  readonly infill: Readonly<Record<'prefix' | 'suffix' | 'middle', Token>> | undefined
  /** End-of-generation tokens. */
  getEogTokens(): readonly Token[]
  /** Throws `context_length`, with an estimate, for a text that is far longer than the context. */
  tokenize(text: string, signal: AbortSignal, how?: TokenizeOptions): Promise<readonly Token[]>
  /**
   * @param before preceding tokens, which decide on leading spaces
   * @param withControl whether control tokens are written as text
   */
  detokenize(tokens: readonly Token[], before: readonly Token[], withControl?: boolean): string
  /** Writes control tokens as text, such as those around a message. */
  detokenizeWithSpecial(tokens: readonly Token[]): string
  /** Text of the token in the model file's vocabulary. */
  vocabularyTextOf(token: Token): string
}

interface TokenizeOptions {
  /** Whether text that looks like a special token stays text. @default false */
  readonly isPlain?: boolean | undefined
  /** Stops after this many tokens, or a few more, instead of throwing for a long text. */
  readonly stopAfter?: number | undefined
}

/** The parts that differ between generative and pooling models. */
export interface ModelBackend {
  /** Maximum number of sequences or texts at a time. */
  readonly parallel: number
  /** Longest time that a step takes, in ms. */
  readonly stepMs: number
  readonly runner: Runner
  /** Compiles GBNF. Throws `invalid_request` where llama.cpp rejects it. */
  compileGrammar(source: string): Promise<CompiledGrammar>
  /** Absent for generative models. */
  readonly pooling: PoolingContexts | undefined
  /** Takes effect with the next step. */
  limitThreads(max: number): void
}

/** Grows with every piece of work. The app's watchdog takes a standstill for a hang. */
export interface StepCounter {
  steps: number
}
