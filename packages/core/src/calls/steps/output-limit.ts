/** Limits the output tokens of each answer to the maximum of the caller. */
import type { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { unlimitedTokens } from '../../engine/request-limits.ts'
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { CallStep } from '../step.ts'

/** Its step follows the defaults step, so that a default of the Modelfile is limited, too. */
export const createOutputLimitStep = (subjects: CallerSubjects): CallStep => ({
  name: 'output-limit',
  before(call) {
    const { kind, caller, originalRequests } = call
    const limit = caller && kind === 'generate' ? subjects.maxOutputTokensOf(caller) : undefined
    if (limit === undefined) return
    // Only a maximum that the caller has sent is an error, since the caller cannot change a Modelfile.
    for (const request of originalRequests) {
      const { maxTokens = 0 } = request as GenerateRequest
      if (maxTokens > limit && maxTokens !== unlimitedTokens) throw tooManyTokens(maxTokens, limit)
    }
    call.requests = call.requests.map((request): GenerateRequest => {
      const { maxTokens = limit, ...rest } = request as GenerateRequest
      return { ...rest, maxTokens: Math.min(maxTokens, limit) }
    })
  },
})

const tooManyTokens = (maxTokens: number, limit: number): LlmError =>
  invalidRequest(`Expected at most ${limit} output tokens, the limit of this caller, got ${maxTokens}.`, {
    param: 'maxTokens',
    issue: 'integer_too_big',
  })
