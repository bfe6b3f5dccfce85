import { collect } from '../../engine/events.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { wording } from './errors.ts'
import { events, message, ping } from './render.ts'
import { MessagesRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

/** `POST /v1/messages` */
export const messages: Handler = async ({ request, llm, caller, onError }) => {
  const body = parse(MessagesRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const generation = await llm.generate(toGenerateRequest(body), { signal: request.signal, caller, stream })

  return stream
    ? sse(events(generation), { onError, heartbeat: ping })
    : json(message(generation, await collect(generation)))
}
