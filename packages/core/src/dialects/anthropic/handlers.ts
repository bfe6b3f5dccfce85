import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { withReuse } from '../reuse.ts'
import { wording } from './errors.ts'
import { events, message, ping, thoughtsOf } from './render.ts'
import { MessagesRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

/** `POST /v1/messages` */
export const messages: Handler = async ({ request, llm, caller, onError }) => {
  const body = parse(MessagesRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const thoughts = thoughtsOf(body)
  const generation = await llm.generate(toGenerateRequest(body), {
    signal: request.signal,
    caller,
    stream,
  })

  const response = stream
    ? sse(events(generation, thoughts, body.stop_sequences), { onError, heartbeat: ping })
    : json(await message(generation, thoughts, body.stop_sequences))
  return withReuse(response, [generation])
}
