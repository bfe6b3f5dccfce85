/**
 * Access to private internals of node-llama-cpp. The accessors check that all needed methods exist, and
 * return `undefined` if one is missing.
 */
import type {
  Llama,
  LlamaContext,
  LlamaEmbeddingContext,
  LlamaGrammarEvaluationState,
  LlamaModel,
  LlamaRankingContext,
  Token,
  TokenBias,
} from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { SamplerConfig } from '../decoding/sampling.ts'

/** Internals for decoding and sampling. */
export interface Addon {
  readonly context: AddonContext
  readonly model: object
  readonly AddonSampler: AddonSamplerClass
  /** Text of the tokens, special tokens included. */
  readonly textOf: (tokens: readonly Token[]) => string
}

interface AddonSamplerClass {
  new (model: object): AddonSampler
  canBeNextTokenForGrammarEvaluationState(state: object, token: Token): boolean
  acceptGrammarEvaluationStateToken(state: object, token: Token): void
}

/** This type and the types below follow `bindings/AddonTypes` in node-llama-cpp. */
interface AddonContext {
  initBatch(size: number): void
  addToBatch(sequence: number, position: number, tokens: Uint32Array, outputs: Uint32Array): Uint32Array
  decodeBatch(): Promise<void>
  sampleToken(output: number, sampler: AddonSampler): Promise<Token | -1>
  sampleToken(
    output: number,
    sampler: AddonSampler,
    probabilities: false,
    confidence: false,
    /**
     * Logits to return: of the listed tokens, of the most likely token, of the least likely token, of the
     * sampled token, of the `n` most likely tokens.
     */
    logits: readonly [readonly Token[], boolean, boolean, boolean, number],
    totalWeight: boolean,
  ): Promise<ProbeResult>
  removeTokenCellsFromSequence(sequence: number, from: number, to: number): boolean
  /** Returns -1 for an empty sequence. */
  getSequenceKvCacheMinPosition(sequence: number): number
  saveSequenceStateToFile(file: string, sequence: number, tokens: Uint32Array): Promise<number>
  loadSequenceStateFromFile(file: string, sequence: number, contextSize: number): Promise<Uint32Array>
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>
  setThreads(threads: number): void
}

export interface AddonSampler {
  applyConfig(config: SamplerConfig): void
  dispose(): void
}

/**
 * `logits` alternates token ids and their logits. `totalWeight` is the sum of the weights of all tokens,
 * relative to the most likely token.
 */
export type ProbeResult = readonly [
  token: Token | -1,
  probabilities: undefined,
  confidence: undefined,
  logits: readonly number[],
  totalWeight?: number,
]

/** Internals for embeddings. */
interface AddonEncoder
  extends Pick<AddonContext, 'initBatch' | 'addToBatch' | 'decodeBatch' | 'removeTokenCellsFromSequence'> {
  /** Returns the embedding of the evaluated text, which has this many tokens. */
  getEmbedding(tokens: number): Float64Array
}

interface AddonRenderer {
  render(variables: object): string
}

export function addonOf(llama: Llama, model: LlamaModel, context: LlamaContext): Addon | undefined {
  const { _ctx } = context as unknown as { readonly _ctx?: unknown }
  const { _model } = model as unknown as { readonly _model?: object }
  const { AddonSampler } = bindingsOf(llama)
  const addonContext = withMethods<AddonContext>(_ctx, [
    'initBatch',
    'addToBatch',
    'decodeBatch',
    'sampleToken',
    'removeTokenCellsFromSequence',
    'getSequenceKvCacheMinPosition',
    'saveSequenceStateToFile',
    'loadSequenceStateFromFile',
    'copySequenceStateFromOtherSequence',
    'setThreads',
  ])
  const samplers = withMethods<AddonSamplerClass>(AddonSampler, [
    'canBeNextTokenForGrammarEvaluationState',
    'acceptGrammarEvaluationStateToken',
  ])
  const sampler = withMethods<AddonSampler>(samplers?.prototype, ['applyConfig', 'dispose'])
  return (
    addonContext &&
    _model &&
    samplers &&
    sampler && {
      context: addonContext,
      model: _model,
      AddonSampler: samplers,
      textOf: (tokens) => model.detokenize(tokens, true),
    }
  )
}

export function encoderOf(context: LlamaEmbeddingContext): AddonEncoder | undefined {
  const { _llamaContext } = context as unknown as { readonly _llamaContext?: { readonly _ctx?: unknown } }
  return withMethods<AddonEncoder>(_llamaContext?._ctx, [
    'initBatch',
    'addToBatch',
    'decodeBatch',
    'removeTokenCellsFromSequence',
    'getEmbedding',
  ])
}

/** Scores a joined query and document, from 0 to 1. */
type RankTokens = (input: readonly Token[]) => Promise<number>

/** Internals for reranking. The public API joins the query and the document itself. */
export function rankerOf(context: LlamaRankingContext): RankTokens | undefined {
  const ranker = withMethods<{ _evaluateRankingForInput: RankTokens }>(context, ['_evaluateRankingForInput'])
  return ranker && ((input) => ranker._evaluateRankingForInput(input))
}

export function rendererOf(llama: Llama): (new (source: string) => AddonRenderer) | undefined {
  const { AddonJinjaRenderer } = bindingsOf(llama)
  return AddonJinjaRenderer && withMethods<AddonRenderer>(AddonJinjaRenderer.prototype, ['render'])
    ? AddonJinjaRenderer
    : undefined
}

/** Throws instead of returning `undefined`, since output without its grammar would be wrong. */
export function stateOf(grammar: LlamaGrammarEvaluationState): object {
  const { _state } = grammar as unknown as { readonly _state?: object }
  if (_state) return _state
  throw new LlmError('upstream', 'This version of node-llama-cpp cannot apply grammars. Install 3.22.1.')
}

export const biasesOf = (bias: TokenBias): Map<number, number> | undefined =>
  (bias as unknown as { readonly _biases?: Map<number, number> })._biases

interface Bindings {
  readonly AddonSampler: Addon['AddonSampler']
  readonly AddonJinjaRenderer: new (source: string) => AddonRenderer
}

const bindingsOf = (llama: Llama): Partial<Bindings> =>
  (llama as unknown as { readonly _bindings?: Partial<Bindings> })._bindings ?? {}

const withMethods = <T>(object: unknown, methods: readonly (keyof T)[]): T | undefined =>
  methods.every((name) => typeof (object as Partial<T> | undefined)?.[name] === 'function')
    ? (object as T)
    : undefined
