/** Embeddings of the Ollama API. Shape: Ollama API reference, "Generate embeddings". */
import type { Embeddings, EmbedRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import { readArray, readCount, readRecord } from '../response-fields.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { invalidResponse, unsupportedByUpstream } from '../upstream-errors.ts'
import { toLoadFields } from './chat-request.ts'

export async function embed(
  { model, inputs, overflow, dimensions, load }: EmbedRequest,
  client: UpstreamClient,
  { signal, onInputTokens }: EngineCall,
): Promise<Embeddings> {
  const startedAt = performance.now()
  if (inputs.length === 0) return { embeddings: [], inputTokens: 0, loadMs: 0, totalMs: 0 }
  if (inputs.some((input) => typeof input !== 'string'))
    throw unsupportedByUpstream('embeddings of token ids', 'input')
  const body = readRecord(
    await client.readJson({
      ...{ path: '/api/embed', model, signal },
      json: {
        ...{ model, input: inputs, truncate: overflow === 'truncate', dimensions },
        ...toLoadFields(load),
      },
    }),
    'the answer',
  )
  const embeddings = readArray(body.embeddings, '`embeddings`').map(readVector)
  if (embeddings.length !== inputs.length)
    throw invalidResponse(`it has ${embeddings.length} embeddings for ${inputs.length} inputs`)
  const inputTokens = readCount(body.prompt_eval_count, '`prompt_eval_count`') ?? 0
  onInputTokens?.(inputTokens)
  const loadNs = readCount(body.load_duration, '`load_duration`') ?? 0
  return { embeddings, inputTokens, loadMs: loadNs / 1e6, totalMs: performance.now() - startedAt }
}

function readVector(value: unknown): readonly number[] {
  const vector = readArray(value, 'an embedding')
  if (vector.length > 0 && vector.every((number) => typeof number === 'number')) return vector
  throw invalidResponse('an embedding is no list of numbers')
}
