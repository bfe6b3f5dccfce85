/** Stores the response of a request, and adds it to its conversation. */
import type { Generation } from '../../../calls/generation.ts'
import { LlmError } from '../../../errors.ts'
import type { ModelCall } from '../../dialect.ts'
import type { SaveResponse } from './events.ts'
import { toInputItemId } from './item-ids.ts'
import type { ResponsesRequest } from './schema.ts'
import { toItemObjects } from './stored-items.ts'

export interface AnsweredRequest {
  readonly generation: Generation
  readonly body: ResponsesRequest
  /** The field `input` as the client sent it. */
  readonly sent: unknown
}

/**
 * Returns undefined if the response is not stored. Items of batches are stored only if they ask for it: a batch would
 * replace all other responses of its tenant.
 */
export function createSaver(
  { llm: { responses }, onError }: Pick<ModelCall, 'llm' | 'onError'>,
  { generation, body, sent }: AnsweredRequest,
): SaveResponse | undefined {
  const { store = !generation.isBatchItem, previous_response_id: previousId, conversation } = body
  if (!store || !responses) return undefined
  return async (response) => {
    const input = toItemObjects(sent, (type, index) => toInputItemId(type, generation.id, index))
    const isFailed = response.status === 'failed'
    const items = isFailed ? [] : [...input, ...response.output]
    try {
      return await responses.saveResponse(
        {
          id: response.id,
          body: JSON.stringify(response),
          input: JSON.stringify(input),
          previousId,
          conversationId: conversation?.id,
        },
        items.map((item) => ({ id: item.id, body: JSON.stringify(item), responseId: response.id })),
      )
    } catch (cause) {
      // The answer is paid for, so it is sent although it cannot be stored.
      onError(LlmError.from(cause))
      return false
    }
  }
}
