/** Finds the model, once for the whole call, and checks that the caller may use it. */
import { createModelFilter } from '../../models/model-filter.ts'
import { resolveAllowed } from '../../models/model-resolver.ts'
import type { CallStep } from '../step.ts'

export const modelStep: CallStep = {
  name: 'model',
  async before(call) {
    const { resolveModel = async (name) => ({ name, model: undefined }) } = call
    const requested = call.requests[0]?.model
    if (requested === undefined) return
    const isAllowed = createModelFilter(call.caller?.models)
    const { name, model, alias } = await resolveAllowed(requested, resolveModel, isAllowed)
    call.model = model
    call.modelName = name
    call.alias = alias
    // A name that is no alias stays, since a custom engine may know it by this spelling.
    if (alias !== undefined) call.requests = call.requests.map((request) => ({ ...request, model: name }))
  },
}
