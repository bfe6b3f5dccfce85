/** Batches in the format of the OpenAI API. Shape: OpenAI API reference, "Batch". */
import { nanoid } from 'nanoid'
import { z } from 'zod'
import type { BatchItem } from '../../../batches/batch.ts'
import type { BatchApi, ItemParser } from '../../../batches/batch-api.ts'
import { invalidRequest } from '../../../errors.ts'
import type { ModelHandler } from '../../dialect.ts'
import { JsonObject, truncateForError } from '../../fields.ts'
import { callForItem } from '../../item-call.ts'
import { parse } from '../../parse.ts'
import { embeddings } from '../embeddings.ts'
import { formatIssue, renderError } from '../errors.ts'
import { mapCompletionField, mapResponsesField, withFieldNames } from '../field-names.ts'
import { chatCompletions, completions } from '../handlers.ts'
import { createResponse } from '../responses/handlers.ts'

const handlers: Readonly<Record<string, ModelHandler>> = {
  '/v1/chat/completions': withFieldNames(mapCompletionField, chatCompletions),
  '/v1/completions': withFieldNames(mapCompletionField, completions),
  '/v1/embeddings': withFieldNames(mapCompletionField, embeddings),
  '/v1/responses': withFieldNames(mapResponsesField, createResponse),
}

export const openaiBatches: BatchApi = {
  format: 'openai',
  idPrefix: 'batch',
  endpoints: Object.keys(handlers),
  hasResultFiles: true,
  createParser,
  toProblem: ({ message, details: { param, issue } }, line) => ({
    code:
      (param === undefined && 'invalid_json_line') || problemCodes[`${param} ${issue}`] || 'invalid_request',
    message,
    line,
    ...(param !== undefined && { param }),
  }),
  run: async (item, endpoint, call) =>
    toLine(item, toResponse(200, await callForItem(handlers[endpoint] as ModelHandler, item.params, call))),
  renderError: (item, _endpoint, error) => {
    const { status, body } = renderError(error)
    return toLine(item, toResponse(status, body as string))
  },
  renderNotRun: (item, outcome) => toLine(item, 'null', JSON.stringify(notRunErrors[outcome])),
}

const notRunErrors = {
  canceled: {
    code: 'batch_cancelled',
    message: 'This request was not executed because the batch was cancelled.',
  },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
}

const problemCodes: Readonly<Record<string, string>> = {
  'custom_id value': 'duplicate_custom_id',
  'url value': 'mismatched_url',
  'method value': 'invalid_method',
}

type LineOwner = Pick<BatchItem, 'batch' | 'number' | 'customId'>

/** @param response JSON @param error JSON */
const toLine = ({ batch, number, customId }: LineOwner, response: string, error = 'null'): string =>
  `{"id":"batch_req_${batch.replace(/^batch_/, '')}_${number}","custom_id":${JSON.stringify(customId)},"response":${response},"error":${error}}`

/** @param body JSON */
const toResponse = (status: number, body: string): string =>
  `{"status_code":${status},"request_id":"req_${nanoid()}","body":${body}}`

const Entry = z.object({
  custom_id: z.string().min(1, 'expected a text that is not empty.').max(512),
  method: z.literal('POST', { error: "expected 'POST'." }),
  url: z.string(),
  body: JsonObject,
})

/** The bodies are checked when the items run: an invalid one does not fail the batch. */
function createParser(endpoint: string): ItemParser {
  const ids = new Set<string>()
  return (entry) => {
    const { custom_id: customId, url, body } = parse(Entry, entry, formatIssue)
    if (url !== endpoint)
      throw invalidRequest(`Invalid 'url': expected the endpoint of the batch, ${endpoint}.`, {
        param: 'url',
        issue: 'value',
      })
    if (ids.has(customId))
      throw invalidRequest(
        `Invalid 'custom_id': '${truncateForError(customId)}' is the id of another request of this batch.`,
        { param: 'custom_id', issue: 'value' },
      )
    ids.add(customId)
    const { model, tools, instructions, messages, prompt, input } = body
    return {
      customId,
      params: body,
      model: typeof model === 'string' ? model : '',
      prompt: JSON.stringify([tools, instructions, messages ?? prompt ?? input]),
    }
  }
}
