/** Embeddings. Shape: Ollama API reference, "Generate embeddings" and its deprecated predecessor. */
import type { Embeddings, EmbedRequest } from '../../engine/embeddings.ts'
import { describeAlias, invalidRequest, LlmError, modelNotFound } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { Handler, RouteCall } from '../dialect.ts'
import { readBody } from './body.ts'
import { appendDenial } from './errors.ts'
import { loadOrUnload } from './loading.ts'
import { findDetails } from './models.ts'
import { toNanoseconds } from './render.ts'
import * as schema from './schema.ts'
import { toLoad } from './translate.ts'

/** Context size for the shortest text: a begin token, one token of text and an end token. */
const minContextSize = 3

/** `POST /api/embed` */
export const embed: Handler = async (call) => {
  const startedAt = performance.now()
  const body = await readBody(call.request, schema.EmbedRequest, 'EmbedRequest')
  const { model, input = [], truncate = true, dimensions = 0 } = body
  if (!model) throw modelNotFound('')
  const inputs = input === '' ? [] : [input].flat()
  const result = await embedOrLoad(call, body, {
    inputs,
    overflow: truncate ? 'truncate' : 'error',
    ...(dimensions > 0 && { dimensions }),
  })
  return json({
    model,
    embeddings: result?.embeddings ?? [],
    ...(result && {
      total_duration: toNanoseconds(performance.now() - startedAt),
      load_duration: toNanoseconds(result.loadMs),
      prompt_eval_count: result.inputTokens,
    }),
  })
}

/** `POST /api/embeddings` */
export const legacyEmbeddings: Handler = async (call) => {
  const body = await readBody(call.request, schema.EmbeddingsRequest, 'EmbeddingRequest')
  const { model, prompt } = body
  if (!model) throw invalidRequest('model is required', { param: 'model' })
  const result = await embedOrLoad(call, body, { inputs: prompt ? [prompt] : [] })
  return json({ embedding: result?.embeddings[0] ?? [] })
}

/** Embeds the inputs, or only loads the model if there are none. */
async function embedOrLoad(
  call: RouteCall,
  body: Parameters<typeof loadOrUnload>[1],
  { inputs, ...options }: Pick<EmbedRequest, 'inputs' | 'overflow' | 'dimensions'>,
): Promise<Embeddings | undefined> {
  const { request, llm } = call
  const { model = '' } = body
  try {
    if (inputs.length === 0) {
      await loadOrUnload(call, body)
      return undefined
    }
    await findDetails(llm, model)
    const { num_ctx: size = -1 } = body.options ?? {}
    if (size >= 0 && size < minContextSize)
      throw invalidRequest('input exceeds maximum context length and cannot be truncated further', {
        param: 'options.num_ctx',
      })
    // Ollama embeds empty texts. A model without a begin token cannot, so an empty text becomes a space.
    const texts = inputs.map((text) => (text === '' ? ' ' : text))
    return await llm.embed(
      { model, inputs: texts, ...options, load: toLoad(body) },
      { signal: request.signal },
    )
  } catch (cause) {
    throw toEmbedError(LlmError.from(cause), model)
  }
}

/** Replaces error messages by texts that clients of the embedding routes match on. */
function toEmbedError(error: LlmError, model: string): LlmError {
  const { inputTokens, contextSize, requestedContextSize, model: missing, alias } = error.details
  if (error.code === 'not_found' && missing !== undefined) {
    const missingName = alias === undefined ? model : missing
    return new LlmError(
      'not_found',
      `model "${missingName}" not found${describeAlias(alias)}, try pulling it first`,
      { param: 'model' },
    )
  }
  if (error.code !== 'context_length' || inputTokens === undefined) return error
  return new LlmError(
    'context_length',
    appendDenial(
      `the input length exceeds the context length: it has ${inputTokens} tokens, and the model reads ${contextSize}`,
      requestedContextSize,
    ),
  )
}
