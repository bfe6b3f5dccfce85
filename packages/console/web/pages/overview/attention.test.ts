import { expect, test } from 'vitest'
import type { ApiKey } from '../../api/types.ts'
import { errorsOf, expiryOf, missingPricesOf, requestsOf, spendingOf, unpricedOf } from './attention.ts'

const now = new Date('2026-03-01T12:00:00Z')
const key = (more: Partial<ApiKey>): ApiKey =>
  ({ id: 'key_a', name: 'Build server', status: 'active', ...more }) as ApiKey
const texts = (items: readonly { readonly text: string }[]) => items.map(({ text }) => text)
const sums = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, nanoUsd: 0n }

test('A model needs attention if many of its calls fail, and there are enough of them', () => {
  const model = (name: string, calls: number, errors: number) => ({
    ...{ id: name, name, isKey: false, calls, errors },
    ...sums,
  })
  const items = errorsOf([model('good', 100, 4), model('bad', 20, 2), model('rare', 3, 3)])
  expect(texts(items)).toEqual(['10% of the calls to bad failed.'])
})

test('A name in a link is encoded', () => {
  const [item] = errorsOf([{ id: 'a&b=c', name: 'a&b=c', isKey: false, calls: 20, errors: 20, ...sums }])
  expect(item?.href).toBe('/overview?model=a%26b%3Dc')
})

test('A key needs attention near its spending limit, and more at it', () => {
  const spending = (nanoUsd: string) =>
    spendingOf([key({ spending: { nanoUsd, limitNanoUsd: '5000000000', period: 'month' } })])
  expect(spending('3900000000')).toEqual([])
  expect(spending('4000000000')[0]).toMatchObject({
    tone: 'warning',
    text: 'Build server has spent 80% of its limit of $5.00.',
  })
  expect(spending('5000000000')[0]?.tone).toBe('danger')
})

test('A key needs attention in the week before it expires', () => {
  expect(expiryOf([key({ expiresAt: '2026-03-09T12:00:00Z' })], now)).toEqual([])
  expect(texts(expiryOf([key({ expiresAt: '2026-03-04T12:00:00Z' })], now))).toEqual([
    'Build server expires in 3 days.',
  ])
  expect(expiryOf([key({ expiresAt: '2026-02-28T12:00:00Z', status: 'revoked' })], now)).toEqual([])
})

test.each([
  [1, false, '1 request for higher limits waits for a decision.'],
  [2, false, '2 requests for higher limits wait for a decision.'],
  [100, true, '100 or more requests for higher limits wait for a decision.'],
])('%d requests with more: %s', (count, hasMore, text) => {
  expect(texts(requestsOf(count, hasMore))).toEqual([text])
})

test('Nothing needs attention without requests, and with prices', () => {
  expect(requestsOf(0, false)).toEqual([])
  expect(unpricedOf([{ group: 'tiny', unpricedCalls: 0 }])).toEqual([])
})

test('Models without a price need attention in an app that uses prices', () => {
  expect(missingPricesOf(['tiny:latest'], false)).toEqual([])
  expect(missingPricesOf([], true)).toEqual([])
  expect(texts(missingPricesOf(['a', 'b'], true))).toEqual([
    'Keys with a spending limit cannot use models without a price: a and b.',
  ])
})
