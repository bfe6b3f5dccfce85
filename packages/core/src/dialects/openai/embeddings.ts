/** Shape: OpenAI API reference, "Create embeddings". */
import { z } from 'zod'
import { limits } from '../../engine/request-limits.ts'
import { invalidRequest } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { Handler } from '../dialect.ts'
import { integerFrom, optional } from '../fields.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { textsOrTokens } from './schema.ts'

const EmbeddingRequest = z.object({
  model: z.string().min(1).max(limits.modelLength),
  input: textsOrTokens(z.string().min(1, 'expected a text that is not empty.')),
  dimensions: optional(integerFrom(1)),
  // OpenAI's clients ask for base64 by default.
  encoding_format: optional(z.enum(['float', 'base64'])),
})

/** `POST /v1/embeddings` */
export const embeddings: Handler = async ({ request, llm }) => {
  const body = parse(EmbeddingRequest, await request.json(), formatIssue)
  const { model, input: inputs, dimensions, encoding_format: format = 'float' } = body
  const embedRequest = { model, inputs, ...(dimensions !== undefined && { dimensions }) }
  const { embeddings: vectors, inputTokens } = await llm.embed(embedRequest, {
    signal: request.signal,
  })
  checkDimensions(vectors[0]?.length ?? 0, dimensions)

  return json({
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? toBase64(vector) : vector,
    })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  })
}

/** Compares with the result, since the model's dimensions are known only after it has run. */
function checkDimensions(available: number, requested = 0): void {
  if (requested > available)
    throw invalidRequest(`Invalid 'dimensions': the vectors of this model have ${available}.`, {
      param: 'dimensions',
      issue: 'integer_too_big',
    })
}

/** Little-endian 32-bit floats: the byte order of every machine that runs models. */
const toBase64 = (vector: readonly number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString('base64')
