/** Whether the caller may use the model. Its identity was checked where the call came in. */
import { LlmError } from '../../errors.ts'
import { createModelFilter, modelNotAllowed } from '../../models/model-filter.ts'
import type { CallStep } from '../step.ts'

/** @param hasLedger whether spending is counted */
export const createAuthoriseStep = (hasLedger: boolean): CallStep => ({
  name: 'authorise',
  before({ caller, requests }) {
    if (!caller) return
    const isAllowed = createModelFilter(caller.models)
    // Also models that do not exist: an error must not tell which models there are.
    for (const { model } of requests) if (!isAllowed(model)) throw modelNotAllowed(model)
    if (caller.spendingLimit && !hasLedger) throw spendingNeedsDatabase()
  },
})

const spendingNeedsDatabase = (): LlmError =>
  new LlmError(
    'internal',
    'In the app, a caller with `spendingLimit` needs the option `database` of createLlm().',
    { setup: true },
  )
