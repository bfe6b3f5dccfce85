/** The model as the rest of this folder sees it. How it is made of node-llama-cpp is in `binding/`. */
import type { Token } from 'node-llama-cpp'
import type { ChatTemplate } from '../../../template/jinja.ts'
import type { CompiledGrammar } from './decoding/decoder.ts'
import type { PoolingContexts } from './pooling.ts'
import type { Runner } from './runner.ts'

/** What one load decides once. */
export interface RuntimeModel extends ModelVocabulary, ModelBackend {
  /** As the app calls it. */
  readonly name: string
  readonly fingerprint: string
  readonly contextSize: number
  /** The memory for weights and context, and the part of it that is on a graphics card. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** Of it, what is read from the file again when the machine has used its memory otherwise. */
  readonly mappedBytes: number
  /** What is not as it was wanted, for the log of the app. */
  readonly notes: readonly string[]
}

/** Its vocabulary, and text to tokens and back. */
export interface ModelVocabulary {
  readonly vocabularySize: number
  readonly template: ChatTemplate
  /** What every prompt of this model begins with, where it wants that. */
  readonly bos: Token | undefined
  /** What every text of it ends with, where it wants that. */
  readonly end: Token | undefined
  /** What stands in front of a text that nothing is in front of. */
  readonly start: Token | undefined
  /** What it closes its own message with. */
  readonly eot: Token | undefined
  /** Before a gap, behind it, and before what fills it; nothing where the model was not made for that. */
  readonly infill: Readonly<Record<'prefix' | 'suffix' | 'middle', Token>> | undefined
  /** All tokens that end an answer. */
  getEogTokens(): readonly Token[]
  /** Throws `context_length`, with an estimate, for a text that is far longer than the context. */
  tokenize(text: string, signal: AbortSignal, how?: TokenizeOptions): Promise<readonly Token[]>
  /**
   * @param before what precedes, so that spaces come out right
   * @param withControl also the tokens that are no text
   */
  detokenize(tokens: readonly Token[], before: readonly Token[], withControl?: boolean): string
  /** With the tokens that are no text, such as those around a message. */
  detokenizeWithSpecial(tokens: readonly Token[]): string
  /** As the vocabulary of the file has it. */
  vocabularyTextOf(token: Token): string
}

interface TokenizeOptions {
  /** What looks like a special token is text. @default false */
  readonly isPlain?: boolean | undefined
  /** So many tokens are enough, or a few more; then no text is too long. */
  readonly stopAfter?: number | undefined
}

/** What depends on what the model is made for. */
export interface ModelBackend {
  /** How many answers are made side by side, or texts are read. */
  readonly parallel: number
  /** What a step takes at worst, in milliseconds. */
  readonly stepMs: number
  readonly runner: Runner
  /** Of GBNF. Throws `invalid_request` where native code refuses it. */
  compileGrammar(source: string): Promise<CompiledGrammar>
  /** Nothing where the model writes. */
  readonly pooling: PoolingContexts | undefined
  /** From the next step on no more than so many. */
  limitThreads(max: number): void
}

/** What the watch over this process looks at: it grows with every piece of work. */
export interface StepCounter {
  steps: number
}
