import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type TokenUsage, uncached } from '../../engine/events.ts'
import {
  affordableOutput,
  computeCost,
  countByKind,
  type Price,
  type TokensByKind,
  toRates,
  toWorstCaseTokens,
} from './pricing.ts'

const usd = fc.double({ min: 0, max: 1_000, noNaN: true })
const price: fc.Arbitrary<Price> = fc.record(
  {
    inputPerMillionUsd: usd,
    outputPerMillionUsd: usd,
    cachedInputPerMillionUsd: usd,
    cacheWritePerMillionUsd: usd,
  },
  { requiredKeys: ['inputPerMillionUsd', 'outputPerMillionUsd'] },
)
const count = fc.nat(1_000_000)
const tokens: fc.Arbitrary<TokensByKind> = fc.record({
  input: count,
  cachedInput: count,
  cacheWrite: count,
  output: count,
})

describe('a cost', () => {
  test('is the price of each kind of token; cached input defaults to a tenth of input', () => {
    const rates = toRates({ inputPerMillionUsd: 1, outputPerMillionUsd: 2 })

    expect(computeCost({ input: 100, cachedInput: 0, cacheWrite: 0, output: 0 }, rates)).toBe(100_000)
    expect(computeCost({ input: 0, cachedInput: 100, cacheWrite: 0, output: 0 }, rates)).toBe(10_000)
    expect(computeCost({ input: 0, cachedInput: 0, cacheWrite: 100, output: 0 }, rates)).toBe(100_000)
    expect(computeCost({ input: 0, cachedInput: 0, cacheWrite: 0, output: 100 }, rates)).toBe(200_000)
  })

  test('is halved for batches', () => {
    const rates = toRates({ inputPerMillionUsd: 3, outputPerMillionUsd: 15 })

    expect(computeCost({ input: 1_000, cachedInput: 0, cacheWrite: 0, output: 1_000 }, rates, true)).toBe(
      9_000_000,
    )
  })

  test('is rounded once, at the end', () => {
    // Each token costs a third of a nano-dollar.
    const rates = toRates({ inputPerMillionUsd: 0.000333333, outputPerMillionUsd: 0.000333333 })

    expect(computeCost({ input: 1, cachedInput: 0, cacheWrite: 0, output: 1 }, rates)).toBe(1)
    expect(computeCost({ input: 1, cachedInput: 0, cacheWrite: 0, output: 0 }, rates)).toBe(0)
  })

  test('is a whole number from 0 on', () => {
    fc.assert(
      fc.property(price, tokens, fc.boolean(), (price, tokens, isBatch) => {
        const cost = computeCost(tokens, toRates(price), isBatch)
        expect(Number.isSafeInteger(cost) && cost >= 0).toBe(true)
      }),
    )
  })

  test('never falls with more tokens', () => {
    fc.assert(
      fc.property(price, tokens, tokens, (price, tokens, more) => {
        const rates = toRates(price)
        expect(computeCost(sum(tokens, more), rates)).toBeGreaterThanOrEqual(computeCost(tokens, rates))
      }),
    )
  })

  test('is the sum of its parts, except for rounding', () => {
    fc.assert(
      fc.property(price, tokens, tokens, (price, a, b) => {
        const rates = toRates(price)
        const parts = computeCost(a, rates) + computeCost(b, rates)
        expect(Math.abs(computeCost(sum(a, b), rates) - parts)).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('affordable output', () => {
  test('is affordable for each possible kind of prompt tokens', () => {
    fc.assert(
      fc.property(price, count, fc.nat(1e9), fc.boolean(), (price, inputTokens, nanoUsd, isBatch) => {
        const rates = toRates(price)
        const output = affordableOutput(BigInt(nanoUsd), inputTokens, rates, isBatch)
        if (output === undefined) {
          expect(
            computeCost(toWorstCaseTokens(inputTokens, 0, rates), rates, isBatch),
          ).toBeGreaterThanOrEqual(nanoUsd)
          return
        }
        const said = Number.isFinite(output) ? output : 0
        expect(computeCost(toWorstCaseTokens(inputTokens, said, rates), rates, isBatch)).toBeLessThanOrEqual(
          nanoUsd,
        )
        const cached = { input: 0, cachedInput: inputTokens, cacheWrite: 0, output: said }
        expect(computeCost(cached, rates, isBatch)).toBeLessThanOrEqual(nanoUsd)
        if (rates.output > 0n)
          expect(
            computeCost(toWorstCaseTokens(inputTokens, said + 1, rates), rates, isBatch),
          ).toBeGreaterThanOrEqual(nanoUsd)
      }),
    )
  })
})

describe('the tokens of a prompt', () => {
  const usage = (given: Partial<TokenUsage>): TokenUsage => ({
    ...uncached,
    inputTokens: 100,
    reusedTokens: 0,
    outputTokens: 7,
    ...given,
  })

  test('are each of one kind', () => {
    expect(countByKind(usage({ reusedTokens: 30 }))).toEqual({
      input: 70,
      cachedInput: 30,
      cacheWrite: 0,
      output: 7,
    })
    expect(
      countByKind(usage({ reusedTokens: 30, cacheReadTokens: 30, cacheWriteTokens: { '5m': 40, '1h': 10 } })),
    ).toEqual({ input: 20, cachedInput: 30, cacheWrite: 50, output: 7 })
  })

  test('count as cached if they were reused, even before a new breakpoint', () => {
    const tokens = countByKind(usage({ reusedTokens: 60, cacheWriteTokens: { '5m': 80, '1h': 0 } }))

    expect(tokens).toEqual({ input: 20, cachedInput: 60, cacheWrite: 20, output: 7 })
  })
})

const sum = (a: TokensByKind, b: TokensByKind): TokensByKind => ({
  input: a.input + b.input,
  cachedInput: a.cachedInput + b.cachedInput,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  output: a.output + b.output,
})
