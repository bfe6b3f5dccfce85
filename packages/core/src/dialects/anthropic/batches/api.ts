/** Batches in the format of the Anthropic API. Shape: Anthropic API reference, "Message Batches". */
import { nanoid } from 'nanoid'
import { z } from 'zod'
import type { BatchApi, ItemParser } from '../../../batches/batch-api.ts'
import { invalidRequest, type LlmError } from '../../../errors.ts'
import { isRecord } from '../../../util/is-record.ts'
import { JsonObject, truncateForError } from '../../fields.ts'
import { callForItem } from '../../item-call.ts'
import { type IssueFormatter, parse } from '../../parse.ts'
import { formatIssue, renderError } from '../errors.ts'
import { messages } from '../handlers.ts'

export const anthropicBatches: BatchApi = {
  format: 'anthropic',
  idPrefix: 'msgbatch',
  endpoints: ['/v1/messages'],
  hasResultFiles: false,
  createParser,
  toProblem: ({ message }, line) => ({ code: 'invalid_request_error', message, line }),
  run: async ({ customId, params }, _endpoint, call) => {
    if (isRecord(params) && params.max_tokens === 0) throw outputRequired()
    return toLine(customId, `{"type":"succeeded","message":${await callForItem(messages, params, call)}}`)
  },
  renderError: ({ customId }, _endpoint, error) =>
    toLine(customId, `{"type":"errored","error":${renderError(error, `req_${nanoid()}`).body}}`),
  renderNotRun: ({ customId }, outcome) => toLine(customId, `{"type":"${outcome}"}`),
}

/** A direct request without output caches its prompt for the next request. Items have no order. */
const outputRequired = (): LlmError =>
  invalidRequest('max_tokens: Input should be greater than or equal to 1', {
    param: 'max_tokens',
    issue: 'integer_too_small',
  })

/** @param result JSON */
const toLine = (customId: string, result: string): string =>
  `{"custom_id":${JSON.stringify(customId)},"result":${result}}`

const Entry = z.object({
  custom_id: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"),
  params: JsonObject,
})

/** The parameters are checked when the item runs: an invalid item does not reject the batch. */
function createParser(): ItemParser {
  const ids = new Set<string>()
  return (entry, index) => {
    const format: IssueFormatter = (problem) =>
      formatIssue({ ...problem, param: [`requests[${index}]`, problem.param].filter(Boolean).join('.') })
    const { custom_id: customId, params } = parse(Entry, entry, format)
    if (ids.has(customId))
      throw invalidRequest(
        `requests.${index}.custom_id: '${truncateForError(customId)}' is the id of another request of this batch`,
        { param: 'custom_id', issue: 'value' },
      )
    ids.add(customId)
    const { model, tools, system, messages: conversation } = params
    return {
      customId,
      params,
      model: typeof model === 'string' ? model : '',
      prompt: JSON.stringify([tools, system, conversation]),
    }
  }
}
