import { describe, expect, test } from 'vitest'
import type { Caller } from '../../accounts/auth/caller.ts'
import { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import { unlimitedTokens } from '../../engine/request-limits.ts'
import { Call, type CallKind } from '../call.ts'
import { createOutputLimitStep } from './output-limit.ts'

const step = createOutputLimitStep(new CallerSubjects({ small: { maxOutputTokens: 10 } }))
const input = { kind: 'text', prompt: ['Hi'] } as const
const ann: Caller = { id: 'ann', tier: 'small' }

interface Given {
  readonly caller?: Caller
  readonly kind?: CallKind
  /** `maxTokens` of each request of the call. */
  readonly sent?: readonly (number | undefined)[]
  /** `maxTokens` after the defaults of the Modelfile. */
  readonly withDefaults?: readonly (number | undefined)[]
}

async function limited({ caller = ann, kind = 'generate', sent = [undefined], withDefaults = sent }: Given) {
  const toRequests = (all: readonly (number | undefined)[]) =>
    all.map((maxTokens) => ({ model: 'tiny', input, ...(maxTokens !== undefined && { maxTokens }) }))
  const call = new Call({ kind, caller, signal: new AbortController().signal, requests: toRequests(sent) })
  call.requests = toRequests(withDefaults)
  await step.before(call)
  return call.requests.map((request) => (request as { readonly maxTokens?: number }).maxTokens)
}

test('an answer without a maximum gets the maximum of the caller', async () => {
  expect(await limited({})).toEqual([10])
  expect(await limited({ sent: [undefined, 3, 10, 0] })).toEqual([10, 3, 10, 0])
})

test('a higher maximum in the request is an error that names both numbers', async () => {
  await expect(limited({ sent: [5, 11] })).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'Expected at most 10 output tokens, the limit of this caller, got 11.',
    details: { param: 'maxTokens', issue: 'integer_too_big' },
  })
})

test('a higher maximum in the Modelfile is lowered, and a smaller one stays', async () => {
  expect(await limited({ withDefaults: [50] })).toEqual([10])
  expect(await limited({ withDefaults: [4] })).toEqual([4])
})

test('a request for no maximum gets the maximum of the caller', async () => {
  expect(await limited({ sent: [unlimitedTokens] })).toEqual([10])
})

describe('without a maximum of the caller', () => {
  test.each([
    ['a caller without limits', { caller: { id: 'bob' } }],
    ['a call that generates nothing', { kind: 'count' }],
  ] as const)('%s changes nothing', async (_case, given) => {
    expect(await limited({ ...given, sent: [undefined, 500] })).toEqual([undefined, 500])
  })
})
