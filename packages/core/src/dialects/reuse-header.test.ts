import { expect, test } from 'vitest'
import type { Generation } from '../calls/generation.ts'
import { uncached } from '../engine/events.ts'
import { json } from '../http/respond.ts'
import { withReuseHeader } from './reuse-header.ts'

const answer = (reusedTokens?: number): Generation => ({
  id: 'abc',
  model: 'tiny',
  createdAt: new Date(),
  limits: [],
  ...(reusedTokens !== undefined && { promptUsage: { ...uncached, inputTokens: 9, reusedTokens } }),
  async *[Symbol.asyncIterator]() {},
})
const response = json({})
const header = 'x-prompt-tokens-reused'

test.each([
  [[answer(5)], '5'],
  [[answer(0)], '0'],
  [[answer(5), answer(2)], '7'],
  [[answer(5), answer()], '5'],
])('for the generations %j the header is %s', (answers, tokens) => {
  expect(withReuseHeader(response, answers)).toEqual({
    ...response,
    headers: { ...response.headers, [header]: tokens },
  })
})

test('there is no header before a generation has started', () => {
  expect(withReuseHeader(response, [answer()])).toBe(response)
  expect(withReuseHeader(response, [])).toBe(response)
})
