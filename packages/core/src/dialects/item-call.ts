/** Calls the handler of a route for an item of a batch, which has no HTTP request. */
import type { ItemCall } from '../batches/batch-api.ts'
import { invalidRequest, type LlmError } from '../errors.ts'
import { isRecord } from '../util/is-record.ts'
import type { ModelHandler } from './dialect.ts'

/** Returns the body of the response, as JSON. Rejects with the `LlmError` of the request. */
export async function callForItem(
  handler: ModelHandler,
  params: unknown,
  { llm, signal }: ItemCall,
): Promise<string> {
  if (isRecord(params) && params.stream === true) throw streamInBatch()
  const { body } = await handler({
    request: { json: async () => params, signal },
    llm,
    onError: (error: LlmError) => {
      throw error
    },
  })
  return body as string
}

const streamInBatch = (): LlmError =>
  invalidRequest('stream: A request of a batch cannot be streamed.', { param: 'stream', issue: 'value' })
