import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { ModelHandler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { withReuseHeader } from '../reuse-header.ts'
import { formatIssue } from './errors.ts'
import { ping, renderEvents, renderMessage, toThinkingDisplay } from './render.ts'
import { MessagesRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

/** `POST /v1/messages` */
export const messages: ModelHandler = async ({ request, llm, onError }) => {
  const body = parse(MessagesRequest, await request.json(), formatIssue)
  const stream = body.stream ?? false
  const display = toThinkingDisplay(body)
  const generation = await llm.generate(toGenerateRequest(body), {
    signal: request.signal,
    stream,
    endUser: body.metadata?.user_id,
  })

  const response = stream
    ? sse(renderEvents(generation, display, body.stop_sequences), { onError, heartbeat: ping })
    : json(await renderMessage(generation, display, body.stop_sequences))
  return withReuseHeader(response, [generation])
}
