/** Finds the model in the store, once for the whole call. */
import { LlmError } from '../../errors.ts'
import type { CallStep } from '../step.ts'

export const modelStep: CallStep = {
  name: 'model',
  async before(call) {
    const name = call.requests[0]?.model
    if (name === undefined) return
    // A custom engine may know names that the store does not.
    call.model = await call.findModel?.(name).catch(ignoreNotFound)
    call.modelName = call.model?.name ?? name
  },
}

function ignoreNotFound(cause: unknown): undefined {
  if (LlmError.from(cause).code !== 'not_found') throw cause
}
