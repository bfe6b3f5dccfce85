/** Embeds texts by `POST /v1/embeddings`, and scores documents by `POST /v1/rerank`. */
import { isRecord } from '../../../util/is-record.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { invalidResponse } from '../upstream-errors.ts'
import { toCount } from './answer-chunks.ts'
import type { ServerFeatures } from './server-kind.ts'

/** Texts of one request. Hosted services take 2,048. */
const maxTexts = 512

export async function embed(
  { model, inputs, dimensions, overflow }: EmbedRequest,
  features: ServerFeatures,
  client: UpstreamClient,
  { signal, onInputTokens }: EngineCall,
): Promise<Embeddings> {
  const startedAt = performance.now()
  const embeddings: (readonly number[])[] = []
  let inputTokens = 0
  for (let index = 0; index < inputs.length; index += maxTexts) {
    const some = inputs.slice(index, index + maxTexts)
    const body = await client.readJson({
      path: '/v1/embeddings',
      json: {
        ...{ model, input: some, encoding_format: 'float' },
        ...(dimensions && { dimensions }),
        ...toTruncation(overflow, features),
      },
      ...{ model, signal },
    })
    embeddings.push(...toVectors(body, some.length))
    const tokens = tokensIn(body) ?? estimateTokens(some)
    onInputTokens?.(tokens)
    inputTokens += tokens
  }
  return { embeddings, inputTokens, loadMs: 0, totalMs: performance.now() - startedAt }
}

export async function rerank(
  { model, query, documents, overflow }: RerankRequest,
  features: ServerFeatures,
  client: UpstreamClient,
  { signal, onInputTokens }: EngineCall,
): Promise<Ranking> {
  if (documents.length === 0) return { scores: [], inputTokens: 0 }
  const body = await client.readJson({
    path: '/v1/rerank',
    json: { model, query, documents, ...toTruncation(overflow, features) },
    ...{ model, signal },
  })
  const inputTokens = tokensIn(body) ?? estimateTokens(documents.map((document) => query + document))
  onInputTokens?.(inputTokens)
  return { scores: toScores(body, documents.length), inputTokens }
}

/** vLLM cuts to the context size of the model. The tokenizer of a model may say that the beginning is cut. */
const toTruncation = (overflow: EmbedRequest['overflow'], { hasTruncation }: ServerFeatures): object =>
  overflow === 'truncate' && hasTruncation ? { truncate_prompt_tokens: -1, truncation_side: 'right' } : {}

function toVectors(body: unknown, count: number): readonly (readonly number[])[] {
  const vectors = byIndex(body, 'data', count, (entry) => entry.embedding)
  if (!vectors.every(isVector)) throw invalidResponse('an embedding is no list of numbers')
  return vectors.map(normalize)
}

function toScores(body: unknown, count: number): readonly number[] {
  const scores = byIndex(body, 'results', count, (entry) => entry.relevance_score)
  if (!scores.every((score): score is number => typeof score === 'number' && Number.isFinite(score)))
    throw invalidResponse('a score is no number')
  return scores
}

/** Sorts the entries by their index. */
function byIndex(
  body: unknown,
  field: string,
  count: number,
  pick: (entry: Record<string, unknown>) => unknown,
): readonly unknown[] {
  const entries = isRecord(body) ? body[field] : undefined
  const values: unknown[] = new Array(count).fill(undefined)
  if (!Array.isArray(entries)) throw invalidResponse(`it has no list \`${field}\``)
  for (const entry of entries) {
    const index = isRecord(entry) ? toCount(entry.index) : undefined
    if (index !== undefined && index < count) values[index] = pick(entry)
  }
  return values
}

const isVector = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((one) => typeof one === 'number' && Number.isFinite(one))

/** A vector of length 1 stays as it is. */
function normalize(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector) || 1
  return Math.abs(length - 1) < 1e-6 ? vector : vector.map((value) => value / length)
}

function tokensIn(body: unknown): number | undefined {
  const usage = isRecord(body) && isRecord(body.usage) ? body.usage : {}
  return toCount(usage.prompt_tokens) ?? toCount(usage.total_tokens)
}

/** 4 bytes per token. */
const estimateTokens = (texts: readonly (string | readonly number[])[]): number =>
  texts.reduce(
    (sum, text) => sum + (typeof text === 'string' ? Math.ceil(Buffer.byteLength(text) / 4) : text.length),
    0,
  )
