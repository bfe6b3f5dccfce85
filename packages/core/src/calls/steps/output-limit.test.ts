import { describe, expect, test } from 'vitest'
import type { Caller } from '../../accounts/auth/caller.ts'
import { CallerSubjects } from '../../accounts/auth/caller-subjects.ts'
import { unlimitedTokens } from '../../engine/request-limits.ts'
import { Call } from '../call.ts'
import type { CallKind } from '../kind.ts'
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
  const ofRequests = call.requests.map((request) => (request as { readonly maxTokens?: number }).maxTokens)
  return { ofCall: call.maxOutputTokens, ofRequests }
}

test('an answer without a maximum keeps none, and the call gets the maximum of the caller', async () => {
  expect(await limited({})).toEqual({ ofCall: 10, ofRequests: [undefined] })
})

test.each([3, 10, 0])('a maximum of %i in the request stays', async (maxTokens) => {
  expect(await limited({ sent: [maxTokens] })).toEqual({ ofCall: 10, ofRequests: [maxTokens] })
})

test('a higher maximum in the request is an error that names both numbers', async () => {
  await expect(limited({ sent: [11] })).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'Expected at most 10 output tokens, the limit of this caller, got 11.',
    details: { param: 'maxTokens', issue: 'integer_too_big' },
  })
})

test('a higher maximum in the Modelfile is lowered, and a smaller one stays', async () => {
  expect((await limited({ withDefaults: [50] })).ofRequests).toEqual([10])
  expect((await limited({ withDefaults: [4] })).ofRequests).toEqual([4])
})

test('a request for no maximum gets the maximum of the caller', async () => {
  expect((await limited({ sent: [unlimitedTokens] })).ofRequests).toEqual([10])
})

describe('with several prompts, the maximum of the caller is divided equally, and', () => {
  test('each request may ask for its share', async () => {
    expect(await limited({ sent: [3, undefined, 0] })).toEqual({ ofCall: 10, ofRequests: [3, undefined, 0] })
    expect((await limited({ sent: [undefined, undefined], withDefaults: [50, 4] })).ofRequests).toEqual([
      5, 4,
    ])
  })

  test.each([
    [
      [4, 4, 4],
      '3 output tokens for each of 3 prompts, since the limit of this caller is 10 output tokens, got 4.',
    ],
    [Array(11).fill(1), '10 prompts, since the limit of this caller is 10 output tokens, got 11.'],
    [Array(11).fill(undefined), '10 prompts, since the limit of this caller is 10 output tokens, got 11.'],
  ])('a request for more is an error: %j', async (sent, message) => {
    await expect(limited({ sent })).rejects.toMatchObject({
      code: 'invalid_request',
      message: `Expected at most ${message}`,
      details: { param: 'maxTokens', issue: 'integer_too_big' },
    })
  })

  test('any number of prompts may ask for no output', async () => {
    expect((await limited({ sent: Array(20).fill(0) })).ofRequests).toEqual(Array(20).fill(0))
  })
})

describe('without a maximum of the caller', () => {
  test.each([
    ['a caller without limits', { caller: { id: 'bob' } }],
    ['a call that generates nothing', { kind: 'count' }],
  ] as const)('%s changes nothing', async (_case, given) => {
    expect(await limited({ ...given, sent: [undefined, 500] })).toEqual({
      ofCall: Number.POSITIVE_INFINITY,
      ofRequests: [undefined, 500],
    })
  })
})
