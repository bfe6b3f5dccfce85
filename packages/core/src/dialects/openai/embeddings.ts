/** Embeddings. Shape: OpenAI API reference, "Create embeddings". */
import { z } from 'zod'
import { limits } from '../../engine/request-limits.ts'
import { invalidRequest } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { ModelHandler } from '../dialect.ts'
import { integerFrom, optional, unsupportedUnless } from '../fields.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { otherEmbeddingFields } from './extensions/other-fields.ts'
import { textsOrTokens } from './schema.ts'

export const EmbeddingRequest = z.object({
  model: z.string().min(1).max(limits.modelLength),
  input: textsOrTokens(z.string().min(1, 'expected a text that is not empty.')),
  dimensions: optional(integerFrom(1)),
  // OpenAI's clients ask for base64 by default.
  encoding_format: optional(z.enum(['float', 'base64'])),
  // Field of other local servers. `none` would return a vector for each token. node-llama-cpp returns one vector for each
  // evaluation, that of the last output or of the whole text (`AddonContext::GetEmbedding`), and only the model file
  // chooses the pooling.
  pooling: unsupportedUnless(z.string(), "Another pooling than the model's own", () => false),
  ...otherEmbeddingFields,
  user: optional(z.string()),
})

/** `POST /v1/embeddings` */
export const embeddings: ModelHandler = async ({ request, llm }) => {
  const body = parse(EmbeddingRequest, await request.json(), formatIssue)
  const { model, input: inputs, dimensions, encoding_format: format = 'float', user: endUser } = body
  const embedRequest = { model, inputs, ...(dimensions !== undefined && { dimensions }) }
  const { embeddings: vectors, inputTokens } = await llm.embed(embedRequest, {
    signal: request.signal,
    endUser,
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

/** Rejects more dimensions than the vectors have. Their length is known only after the model has run. */
function checkDimensions(available: number, requested = 0): void {
  if (requested > available)
    throw invalidRequest(`Invalid 'dimensions': the vectors of this model have ${available}.`, {
      param: 'dimensions',
      issue: 'integer_too_big',
    })
}

/** Encodes 32-bit floats in the byte order of the machine. All machines that run models are little-endian. */
const toBase64 = (vector: readonly number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString('base64')
