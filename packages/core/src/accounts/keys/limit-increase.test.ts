import { describe, expect, test } from 'vitest'
import { currentLimitsOf, expectIncrease, raiseLimits } from './limit-increase.ts'

const scopes = ['inference'] as const
const tiers = {
  gold: { requestsPerMinute: 10, perEndUser: { concurrent: 2, tokensPerMinute: 5 }, weight: 3 },
}

test('the limits of a key replace those of its tier, whose weight is no limit', () => {
  expect(currentLimitsOf({ tier: 'gold', limits: { requestsPerMinute: 1 } }, tiers)).toMatchObject({
    limits: { requestsPerMinute: 1, perEndUser: tiers.gold.perEndUser },
    isComplete: true,
  })
})

test.each([
  ['above', { requestsPerMinute: 11 }],
  ['equal', { requestsPerMinute: 10, perEndUser: { concurrent: 2 } }],
])('a limit may be %s that of the tier', (_, limits) => {
  expectIncrease({ limits }, currentLimitsOf({ tier: 'gold' }, tiers))
})

test.each([
  ['limits.requestsPerMinute', { requestsPerMinute: 9 }, '9 would be lower than the present limit of 10.'],
  ['limits.concurrent', { concurrent: 100 }, 'the key has none'],
  ['limits.perEndUser.concurrent', { perEndUser: { concurrent: 1 } }, 'present limit of 2.'],
  ['limits.perEndUser.requestsPerMinute', { perEndUser: { requestsPerMinute: 99 } }, 'the key has none'],
])('names %s if it would be lower', (param, limits, message) => {
  expect(() => expectIncrease({ limits }, currentLimitsOf({ tier: 'gold' }, tiers))).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringContaining(message),
      details: { param },
    }),
  )
})

test('a tier that the app does not know may have any limits', () => {
  const grant = { scopes, tier: 'silver', limits: { concurrent: 5 } }
  const increase = { limits: { requestsPerMinute: 1, concurrent: 4 } }

  expect(() => expectIncrease(increase, currentLimitsOf(grant, tiers))).toThrow('limits.concurrent')
  expect(raiseLimits(grant, increase, tiers).limits).toEqual({ requestsPerMinute: 1, concurrent: 5 })
})

test('a raised limit of end users leaves their other limits, also those of the tier', () => {
  const grant = { scopes, tier: 'gold' }

  expect(raiseLimits(grant, { limits: { perEndUser: { concurrent: 7 } } }, tiers)).toEqual({
    ...grant,
    limits: { perEndUser: { concurrent: 7, tokensPerMinute: 5 } },
  })
})

describe('a spending limit', () => {
  const periods = ['day', 'month', 'lifetime'] as const

  test.each([
    // The least amounts that refuse nothing which $1 of the period allows, for a day, a month and a lifetime.
    ['day', [1, 31, undefined]],
    ['month', [1, 1, undefined]],
    ['lifetime', [1, 1, 1]],
  ] as const)('of $1 per %s may be replaced by one that allows as much at any time', (period, amounts) => {
    const grant = { scopes, spendingLimit: { usd: 1, period } }
    const raised = (usd: number | string, wanted: (typeof periods)[number]) =>
      raiseLimits(grant, { limits: {}, spendingLimit: { usd, period: wanted } }).spendingLimit

    for (const [index, wanted] of periods.entries()) {
      const least = amounts[index]
      expect(raised(least ?? 9_000_000, wanted)).toEqual(
        least === undefined ? grant.spendingLimit : { usd: least, period: wanted },
      )
      const lower = `${(least ?? 1) - 1}.999999999`
      expect(raised(lower, wanted)).toEqual(grant.spendingLimit)
      expect(() =>
        expectIncrease({ limits: {}, spendingLimit: { usd: lower, period: wanted } }, currentLimitsOf(grant)),
      ).toThrow('would be lower than the present limit of $1')
    }
  })

  test('cannot be requested for a key without one', () => {
    const increase = { limits: {}, spendingLimit: { usd: 1_000, period: 'day' } } as const

    expect(() => expectIncrease(increase, currentLimitsOf({}))).toThrow(
      'spendingLimit: $1000 per day would be lower than the present limit: the key has none.',
    )
    expect(raiseLimits({ scopes }, increase)).toEqual({ scopes })
  })
})
