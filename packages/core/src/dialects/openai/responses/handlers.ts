/** OpenAI's Responses API: creates responses and counts their input. */
import type { LlmError } from '../../../errors.ts'
import { json } from '../../../http/respond.ts'
import { sse } from '../../../http/streams.ts'
import { isRecord } from '../../../util/is-record.ts'
import type { ModelCall, ModelHandler } from '../../dialect.ts'
import { parse } from '../../parse.ts'
import { withReuseHeader } from '../../reuse-header.ts'
import { formatIssue } from '../errors.ts'
import { createBodyFieldMapper, mapErrorField } from '../field-names.ts'
import { findConstraint } from '../formats.ts'
import { endUserOf } from '../translate.ts'
import { ResponseEvents } from './events.ts'
import { loadItems } from './request-items.ts'
import { createSaver } from './save-response.ts'
import { ResponsesRequest } from './schema.ts'
import { listCallable, mapToolField } from './tools.ts'
import { responseFormatNames, toGenerateRequest } from './translate.ts'

/** `POST /v1/responses` */
export const createResponse: ModelHandler = async (call) => {
  const { request, llm, onError } = call
  const { body, sent, items } = await read(call)
  const stream = body.stream ?? false
  const options = { signal: request.signal, stream, endUser: endUserOf(body) }
  const generation = await llm
    .generate(toGenerateRequest(body, items), options)
    .catch((cause: unknown) => throwWithOwnField(body, cause))

  const response = new ResponseEvents(generation, body, createSaver(call, { generation, body, sent }))
  const handleError = (error: LlmError): string => {
    onError(error)
    return response.fail(error)
  }
  const answer = stream ? sse(response.frames(), { onError: handleError }) : json(await response.collect())
  return withReuseHeader(answer, [generation])
}

/** `POST /v1/responses/input_tokens` */
export const countInputTokens: ModelHandler = async (call) => {
  const { body, items } = await read(call)
  const count = await call.llm
    .countTokens(toGenerateRequest(body, items), { signal: call.request.signal })
    .catch((cause: unknown) => throwWithOwnField(body, cause))

  return json({ object: 'response.input_tokens', input_tokens: count })
}

function throwWithOwnField(body: ResponsesRequest, cause: unknown): never {
  const constraint = findConstraint({ ...body, format: body.text?.format }, responseFormatNames)
  const mapField = createBodyFieldMapper({ constraint })
  throw mapErrorField(mapField, mapErrorField(mapToolField(listCallable(body.tools)), cause))
}

/** Reads a request. `sent` is its field `input` as the client sent it. */
async function read(call: ModelCall) {
  const given = await call.request.json()
  const body = parse(ResponsesRequest, given, formatIssue)
  const sent = isRecord(given) ? given.input : undefined
  return { body, sent, items: await loadItems(body, sent, call) }
}
