/**
 * Contexts for embedding and reranking through node-llama-cpp. Each context runs one thread and evaluates one text at
 * a time.
 */
import type { GgufFileInfo, LlamaModel, Token } from 'node-llama-cpp'
import type { EvaluateTexts, PoolingContexts, PoolingInput } from '../pooling.ts'
import { encoderOf, rankerOf } from './addon.ts'
import { ContextPool } from './context-pool.ts'

type EvaluateOne = (...input: PoolingInput) => Promise<ArrayLike<number>>

interface OpenedContext {
  readonly evaluate: EvaluateOne
  readonly maxTokens: number
  readonly lengthOf: PoolingContexts['lengthOf']
}

const sampleTokens = 64
const anyToken = 0 as Token

/** @param maxContexts maximum number of texts evaluated at once */
export async function openPoolingContexts(
  model: LlamaModel,
  kind: 'embed' | 'rerank',
  contextSize: number,
  maxContexts: number,
  findEncoder = encoderOf,
): Promise<PoolingContexts> {
  const open = (): Promise<OpenedContext> =>
    kind === 'rerank' ? openRanker(model, contextSize) : openEncoder(model, contextSize, findEncoder)
  const toEvaluate =
    ({ evaluate }: OpenedContext): EvaluateTexts =>
    async (inputs) => {
      const vectors: ArrayLike<number>[] = []
      for (const input of inputs) vectors.push(await evaluate(...input))
      return vectors
    }
  const first = await open()
  const { maxTokens, lengthOf } = first
  const evaluate = toEvaluate(first)
  return {
    kind,
    maxTokens,
    lengthOf,
    limits: { tokens: 1, texts: 1 },
    stepMs: await measureStepMs(evaluate, kind, maxTokens),
    pool: new ContextPool(evaluate, async () => toEvaluate(await open()), maxContexts),
  }
}

/** Estimates the time for a text of `maxTokens` tokens, in ms. */
export async function measureStepMs(
  evaluate: EvaluateTexts,
  kind: 'embed' | 'rerank',
  maxTokens: number,
): Promise<number> {
  const sample = Array<Token>(Math.min(sampleTokens, maxTokens >> 1)).fill(anyToken)
  const input = kind === 'rerank' ? [sample.slice(sample.length >> 1), sample.slice(0, 1)] : [sample]
  // The first run is not timed, since it reads weights from the disk and allocates buffers.
  await evaluate([input])
  const startedAt = performance.now()
  await evaluate([input])
  return ((performance.now() - startedAt) * maxTokens) / sample.length
}

/** The whole text is one batch, since an encoder attends to all of it. */
const optionsFor = (contextSize: number) => ({ contextSize, batchSize: contextSize, threads: 1 })

async function openEncoder(
  model: LlamaModel,
  contextSize: number,
  findEncoder: typeof encoderOf,
): Promise<OpenedContext> {
  const context = await model.createEmbeddingContext(optionsFor(contextSize))
  const encoder = findEncoder(context)
  const lengthOf = (...texts: readonly (readonly Token[])[]): number =>
    texts.reduce((sum, { length }) => sum + length, 0)
  // The public API reserves one token for output.
  if (!encoder) {
    const evaluate = async (text: readonly Token[] = []) => (await context.getEmbeddingFor([...text])).vector
    return { evaluate, maxTokens: contextSize - 1, lengthOf }
  }
  const evaluate = async (text: readonly Token[] = []): Promise<Float64Array> => {
    encoder.removeTokenCellsFromSequence(0, -1, -1)
    encoder.initBatch(text.length)
    encoder.addToBatch(0, 0, Uint32Array.from(text), Uint32Array.of(text.length - 1))
    await encoder.decodeBatch()
    return encoder.getEmbedding(text.length)
  }
  return { evaluate, maxTokens: contextSize, lengthOf }
}

async function openRanker(model: LlamaModel, contextSize: number): Promise<OpenedContext> {
  const context = await model.createRankingContext(optionsFor(contextSize))
  const rank = rankerOf(context)
  const join = rankingFormatOf(model)
  if (!rank || !join)
    return {
      evaluate: async (query = [], document = []) => [await context.rank([...query], [...document])],
      maxTokens: contextSize - 1,
      lengthOf: (query, document) => context.calculateInputLength([...query], [...document]),
    }
  return {
    evaluate: async (query = [], document = []) => [await rank(join(query, document))],
    maxTokens: contextSize - 1,
    lengthOf: (query, document) => join(query, document).length,
  }
}

/** Returns the tokens of a query and a document with the special tokens of the model. */
export type RankingFormat = (query: readonly Token[], document: readonly Token[]) => readonly Token[]

/**
 * Joins a query and a document as llama.cpp's server does. node-llama-cpp inserts all tokens that the model has, also
 * those that its file turns off, so BERT models would see two separators. Returns nothing for a model with a template,
 * which decides itself.
 */
export function rankingFormatOf({ tokens, vocabularyType, fileInfo }: LlamaModel): RankingFormat | undefined {
  const { metadata } = fileInfo
  if (hasRankingTemplate(fileInfo)) return undefined
  const { pre, ...ggml }: Readonly<Record<string, unknown>> = { ...metadata.tokenizer?.ggml }
  // Defaults of llama.cpp.
  const defaults = vocabularyType === 'wpm' || separatedVocabularies.includes(String(pre))
  const separator = (ggml.add_sep_token ?? defaults) ? tokens.sep : null
  const isEnded = tokens.shouldAppendEosToken || ggml.add_eos_token === true
  const [begin, end, between] = [
    tokens.shouldPrependBosToken ? tokens.bos : null,
    isEnded ? (tokens.eos ?? tokens.sep) : null,
    separator,
  ].map((token) => (token === null ? [] : [token])) as [Token[], Token[], Token[]]
  return (query, document) => [...begin, ...query, ...end, ...between, ...document, ...end]
}

export const hasRankingTemplate = ({ metadata }: GgufFileInfo): boolean =>
  metadata.tokenizer?.['chat_template.rerank'] !== undefined

const separatedVocabularies: readonly string[] = ['jina-v1-en', 'jina-v2-code', 'roberta-bpe']
