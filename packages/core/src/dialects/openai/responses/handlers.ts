/** OpenAI's Responses API, without stored responses. */
import { LlmError } from '../../../errors.ts'
import { json } from '../../../http/respond.ts'
import { sse } from '../../../http/streams.ts'
import type { Handler, ModelHandler } from '../../dialect.ts'
import { truncateForError } from '../../fields.ts'
import { parse } from '../../parse.ts'
import { withReuseHeader } from '../../reuse-header.ts'
import { formatIssue } from '../errors.ts'
import { endUserOf } from '../translate.ts'
import { ResponseEvents } from './events.ts'
import { ResponsesRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

/** `POST /v1/responses` */
export const createResponse: ModelHandler = async ({ request, llm, onError }) => {
  const body = parse(ResponsesRequest, await request.json(), formatIssue)
  const stream = body.stream ?? false
  const generation = await llm.generate(toGenerateRequest(body), {
    signal: request.signal,
    stream,
    endUser: endUserOf(body),
  })

  const response = new ResponseEvents(generation, body)
  const handleError = (error: LlmError): string => {
    onError(error)
    return response.fail(error)
  }
  const answer = stream ? sse(response.frames(), { onError: handleError }) : json(await response.collect())
  return withReuseHeader(answer, [generation])
}

/** `POST /v1/responses/input_tokens` */
export const countInputTokens: ModelHandler = async ({ request, llm }) => {
  const body = parse(ResponsesRequest, await request.json(), formatIssue)
  const count = await llm.countTokens(toGenerateRequest(body), { signal: request.signal })

  return json({ object: 'response.input_tokens', input_tokens: count })
}

/** Handles all routes of stored responses, since this server stores none. */
export const rejectStoredResponse: Handler = async ({ request: { params } }) => {
  const id = truncateForError(params.id ?? '')
  throw new LlmError('not_found', `Response with id '${id}' not found: this server does not store responses.`)
}
