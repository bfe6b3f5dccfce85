/** Limits the output tokens of each call to the maximum of the caller. */
import type { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { unlimitedTokens } from '../../engine/request-limits.ts'
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { CallStep } from '../step.ts'

/**
 * Each prompt of the call gets an equal share of the maximum. This step follows the defaults step, so that a
 * default of the Modelfile is limited, too.
 */
export const createOutputLimitStep = (subjects: CallerSubjects): CallStep => ({
  name: 'output-limit',
  before(call) {
    const { kind, caller, forwarded, originalRequests } = call
    const limit = caller && !forwarded && kind === 'generate' ? subjects.maxOutputTokensOf(caller) : undefined
    if (limit === undefined) return
    const prompts = originalRequests.length
    const share = Math.floor(limit / prompts)
    // Only a maximum that the caller has sent is an error, since the caller cannot change a Modelfile.
    for (const request of originalRequests) {
      const { maxTokens = unlimitedTokens } = request as GenerateRequest
      const leastTokens = maxTokens === unlimitedTokens ? 1 : maxTokens
      if (leastTokens > share) throw tooManyTokens(maxTokens, { limit, share, prompts })
    }
    call.maxOutputTokens = limit
    // A request without a maximum keeps none, because a maximum needs credit for all of its tokens.
    call.requests = call.requests.map((request) => {
      const { maxTokens, ...rest } = request as GenerateRequest
      return maxTokens === undefined ? request : { ...rest, maxTokens: Math.min(maxTokens, share) }
    })
  },
})

interface OutputShare {
  readonly limit: number
  readonly share: number
  readonly prompts: number
}

function tooManyTokens(maxTokens: number, { limit, share, prompts }: OutputShare): LlmError {
  const got = maxTokens === unlimitedTokens ? 'no maximum' : maxTokens
  const ofCaller = `since the limit of this caller is ${count(limit, 'output token')}`
  const expected =
    prompts === 1
      ? `${count(limit, 'output token')}, the limit of this caller, got ${got}`
      : share === 0
        ? `${count(limit, 'prompt')}, ${ofCaller}, got ${prompts}`
        : `${count(share, 'output token')} for each of ${prompts} prompts, ${ofCaller}, got ${got}`
  return invalidRequest(`Expected at most ${expected}.`, { param: 'maxTokens', issue: 'integer_too_big' })
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`
