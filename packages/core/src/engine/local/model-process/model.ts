/** A loaded model, as code outside of `llama/` uses it. `llama/` implements it with node-llama-cpp. */
import type { Token } from 'node-llama-cpp'
import type { ChatTemplate } from '../../../template/jinja.ts'
import type { ModelTask } from '../ipc/messages.ts'
import type { CompiledGrammar } from './decoding/decoder.ts'
import type { PoolingContexts } from './pooling.ts'
import type { Runner } from './runner.ts'
import type { CpuBudget } from './workers/cpu-budget.ts'

export interface RuntimeModel extends ModelVocabulary, ModelBackend {
  /** Name of the model in the app. */
  readonly name: string
  readonly fingerprint: string
  readonly contextSize: number
  /** Memory for weights and contexts, graphics cards included. */
  readonly sizeBytes: number
  /** Part of `sizeBytes` on graphics cards. */
  readonly gpuBytes: number
  /** Layers on graphics cards. */
  readonly gpuLayers: number
  /** Part of `sizeBytes` that is mapped from the model file. The system may drop it and read it again. */
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
  /** Fill-in-the-middle tokens. `undefined` if the vocabulary has none. */
  readonly infill: Readonly<Record<'prefix' | 'suffix' | 'middle', Token>> | undefined
  /** End-of-generation tokens. */
  getEogTokens(): readonly Token[]
  /**
   * Throws an `LlmError`: `context_length` with an estimated token count if the text is far longer than the
   * context, `invalid_request` if the call has no CPU time left.
   */
  tokenize(text: string, budget: CpuBudget, how?: TokenizeOptions): Promise<readonly Token[]>
  /**
   * @param before preceding tokens, which determine whether the text begins with a space
   * @param withControl whether control tokens are written as text
   */
  detokenize(tokens: readonly Token[], before: readonly Token[], withControl?: boolean): string
  /** Detokenizes, and writes control tokens such as `<|im_end|>` as text. */
  detokenizeWithSpecial(tokens: readonly Token[]): string
  /** Text of the token in the model file's vocabulary. */
  vocabularyTextOf(token: Token): string
}

interface TokenizeOptions {
  /** Whether text that looks like a special token is tokenized as plain text. @default false */
  readonly isPlain?: boolean | undefined
  /** Stops after at least this many tokens, instead of throwing for a long text. */
  readonly stopAfter?: number | undefined
}

/** Part of a loaded model that differs between generative and pooling models. */
export interface ModelBackend {
  readonly task: ModelTask
  /** Maximum number of sequences or texts that are evaluated at a time. */
  readonly parallel: number
  /** Estimated duration of the longest decode or prefill step, in ms. */
  readonly stepMs: number
  readonly runner: Runner
  /**
   * Compiles GBNF. Charges the budget. Resolves with `undefined` when its signal aborts first. Throws an `LlmError`
   * `invalid_request` where llama.cpp rejects the grammar.
   */
  compileGrammar(source: string, budget: CpuBudget): Promise<CompiledGrammar | undefined>
  /** Absent for generative models. */
  readonly pooling: PoolingContexts | undefined
  /** Limits the CPU threads that the model uses from the next decode or prefill step on. */
  limitThreads(max: number): void
}

/**
 * Counter that grows while the process works. If it stops growing, the watchdog of the app assumes a hang. While
 * the model decodes, only decoding counts: see `stepsBesideDecoding`.
 */
export interface StepCounter {
  steps: number
}
