import { collect } from '../../engine/events.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { wording } from './errors.ts'
import { chunks, completion } from './render.ts'
import { ChatCompletionRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

/** `POST /v1/chat/completions` */
export const chatCompletions: Handler = async ({ request, llm, caller, onError }) => {
  const body = parse(ChatCompletionRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const generation = await llm.generate(toGenerateRequest(body), { signal: request.signal, caller, stream })

  return stream
    ? sse(chunks(generation, body), { onError })
    : json(completion(generation, await collect(generation)))
}
