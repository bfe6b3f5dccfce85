/** Checks that the caller may use the model. Authentication came before: in the route or in the host app. */
import { LlmError } from '../../errors.ts'
import { createModelFilter, modelNotAllowed } from '../../models/model-filter.ts'
import type { CallStep } from '../step.ts'

/** @param hasLedger whether spending is counted */
export const createAuthoriseStep = (hasLedger: boolean): CallStep => ({
  name: 'authorise',
  before({ caller, requests }) {
    if (!caller) return
    const isAllowed = createModelFilter(caller.models)
    // Checked before the model is looked up, so that the error does not reveal which models exist.
    for (const { model } of requests) if (!isAllowed(model)) throw modelNotAllowed(model)
    if (caller.spendingLimit && !hasLedger) throw spendingNeedsDatabase()
  },
})

const spendingNeedsDatabase = (): LlmError =>
  new LlmError(
    'internal',
    'A caller with `spendingLimit` requires a database. In the app, set the option `database` of createLlm().',
    { setup: true },
  )
