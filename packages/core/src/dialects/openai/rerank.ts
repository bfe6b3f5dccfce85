/** Reranking. Shape: Jina's API reference, "Reranker API", and llama.cpp's server, "POST /v1/rerank". */
import { z } from 'zod'
import type { Ranking } from '../../engine/embeddings.ts'
import { limits } from '../../engine/request-limits.ts'
import { json } from '../../http/respond.ts'
import type { ModelHandler } from '../dialect.ts'
import { createFieldMapper, integerFrom, optional } from '../fields.ts'
import { list, parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { otherRerankFields } from './extensions/other-fields.ts'
import { mapErrorField } from './field-names.ts'

const Text = z.string().min(1, 'expected a text that is not empty.')
const Document = z.union([Text, z.object({ text: Text }).transform(({ text }) => text)], {
  error: 'expected a text, or an object with a text.',
})

export const RerankBody = z
  .object({
    model: z.string().min(1).max(limits.modelLength),
    query: Text,
    documents: optional(list(Document, { min: 1, max: limits.inputs })),
    top_n: optional(integerFrom(1)),
    return_documents: optional(z.boolean()),
    // Fields of the other API of this name, of text-embeddings-inference. Its response is a list.
    texts: optional(list(Text, { min: 1, max: limits.inputs })),
    return_text: optional(z.boolean()),
    ...otherRerankFields,
  })
  .refine(({ documents, texts }) => documents || texts, {
    path: ['documents'],
    params: { issue: 'missing' },
    error: 'expected a list of texts.',
  })
  .refine(({ documents, texts }) => !documents || !texts, {
    path: ['texts'],
    params: { issue: 'value' },
    error: "it cannot be combined with 'documents'.",
  })
type RerankBody = z.output<typeof RerankBody>

/** `POST /v1/rerank`, `POST /rerank` */
export const rerank: ModelHandler = async ({ request, llm }) => {
  const body = parse(RerankBody, await request.json(), formatIssue)
  const { model, query, documents, texts = [] } = body
  const ranking = await llm
    .rerank({ model, query, documents: documents ?? texts }, { signal: request.signal })
    .catch((cause: unknown) => {
      throw documents ? cause : mapErrorField(mapTextsField, cause)
    })
  const best = selectBest(ranking, body)
  return json(documents ? renderRanking(body, ranking, best) : best.map((one) => toTextScore(one, body)))
}

const mapTextsField = createFieldMapper([[/^documents(?=$|\[)/, 'texts']])

interface Scored {
  readonly index: number
  readonly score: number
}

/** Returns the scores of the best documents, the best first. */
const selectBest = ({ scores }: Ranking, { top_n: count }: RerankBody): readonly Scored[] =>
  scores
    .map((score, index) => ({ index, score }))
    .sort((a, b) => b.score - a.score)
    .slice(0, count)

const renderRanking = (
  { model, documents = [], return_documents: hasTexts }: RerankBody,
  { inputTokens }: Ranking,
  best: readonly Scored[],
): object => ({
  model,
  object: 'list',
  usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  results: best.map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(hasTexts && { document: { text: documents[index] } }),
  })),
})

const toTextScore = ({ index, score }: Scored, { texts = [], return_text: hasText }: RerankBody): object => ({
  index,
  score,
  ...(hasText && { text: texts[index] }),
})
