/** Contexts for embedding and reranking that evaluate many texts in one decode. Each context runs one thread. */
import type { Token } from 'node-llama-cpp'
import type { EvaluateTexts, PoolingContexts, PoolingInput } from '../pooling.ts'
import { groupLimits } from '../resources/load-settings.ts'
import { ContextPool } from './context-pool.ts'
import type { DecodeTexts, PoolingWeights } from './libllama.ts'
import { measureStepMs, type RankingFormat } from './pooling-contexts.ts'

interface BatchContextOptions {
  readonly kind: 'embed' | 'rerank'
  readonly contextSize: number
  /** Maximum number of decodes at the same time. */
  readonly maxContexts: number
  readonly flashAttention: boolean | 'auto'
  readonly isOnGpu: boolean
  /** Joins a query and a document. Needed for `rerank`. */
  readonly join: RankingFormat | undefined
}

/** On the CPU, flash attention is slow for fewer tokens than this, in one decode. */
const minFlashTokens = 64
/**
 * Lowest cosine between the vectors of a text alone and in a batch. Quantized weights reach 0.999 by rounding, and a
 * vector that mixes texts about 0.5.
 */
const minCosine = 0.98
/** Largest difference between the logits of a rank. */
const maxRankDifference = 0.02

/** Returns `undefined` if a text in a batch gets another vector than the same text alone. */
export async function openBatchContexts(
  weights: PoolingWeights,
  { kind, contextSize, maxContexts, flashAttention, isOnGpu, join }: BatchContextOptions,
): Promise<PoolingContexts | undefined> {
  const limits = weights.canBatch ? groupLimits : { tokens: 1, texts: 1 }
  const hasNarrow = !isOnGpu && flashAttention === 'auto'
  const open = async (): Promise<DecodeTexts> => {
    const tokens = Math.max(contextSize, groupLimits.tokens)
    const wide = await weights.openContext({ tokens, texts: limits.texts, flashAttention })
    if (!hasNarrow) return wide
    const size = { tokens: minFlashTokens, texts: Math.min(limits.texts, minFlashTokens) }
    const narrow = await weights.openContext({ ...size, flashAttention: false })
    return (texts) => (countTokens(texts) < minFlashTokens ? narrow : wide)(texts)
  }
  const joinInput = ([first = [], document]: PoolingInput): readonly Token[] =>
    document && join ? join(first, document) : first
  const toEvaluate =
    (decode: DecodeTexts): EvaluateTexts =>
    async (inputs) => {
      const vectors = await decode(inputs.map(joinInput))
      return kind === 'rerank' ? vectors.map(([logit = Number.NaN]) => [toProbability(logit)]) : vectors
    }

  const first = await open()
  if (!(await isSameAlone(first, limits.texts, contextSize))) return undefined
  const evaluate = toEvaluate(first)
  return {
    kind,
    maxTokens: contextSize,
    lengthOf: (...input) => joinInput(input).length,
    limits,
    stepMs: await measureStepMs(evaluate, kind, contextSize),
    pool: new ContextPool(evaluate, async () => toEvaluate(await open()), maxContexts),
  }
}

/** Compares vectors of texts of different lengths, in one batch and alone. */
async function isSameAlone(decode: DecodeTexts, maxTexts: number, maxTokens: number): Promise<boolean> {
  const texts = [7, 1, 19, 40]
    .slice(0, maxTexts)
    .map((length, text) =>
      Array.from({ length: Math.min(length, maxTokens) }, (_, at) => (at * 7 + text) as Token),
    )
  const together = await decode(texts)
  for (const [index, text] of texts.entries()) {
    const [alone] = await decode([text])
    const batched = together[index]
    if (!alone || !batched || !isClose(alone, batched)) return false
  }
  return true
}

function isClose(a: Float32Array, b: Float32Array): boolean {
  const [first = Number.NaN] = a
  const [other = Number.NaN] = b
  if (a.length === 1) return Math.abs(first - other) <= maxRankDifference * Math.max(1, Math.abs(first))
  return dot(a, b) >= minCosine * Math.sqrt(dot(a, a) * dot(b, b))
}

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0)

const countTokens = (texts: readonly (readonly Token[])[]): number =>
  texts.reduce((sum, { length }) => sum + length, 0)

const toProbability = (logit: number): number => 1 / (1 + Math.exp(-logit))
