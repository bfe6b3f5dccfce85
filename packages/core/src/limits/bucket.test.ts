import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fullLevel, levelAt, levelPerUnit, maxLimit, resetMs, waitMs } from './bucket.ts'

describe('a bucket of 60 per minute', () => {
  const empty = { level: 0, at: 1_000 }

  test('gets one each second', () => {
    expect(levelAt(empty, 60, 1_999)).toBe(levelPerUnit - 60)
    expect(levelAt(empty, 60, 2_000)).toBe(levelPerUnit)
  })

  test('is full after a minute, and no fuller after a day', () => {
    expect(levelAt(empty, 60, 61_000)).toBe(fullLevel(60))
    expect(levelAt(empty, 60, 86_401_000)).toBe(fullLevel(60))
  })

  test('counts no time where the clock went back', () => {
    expect(levelAt({ level: 5, at: 1_000 }, 60, 0)).toBe(5)
  })

  test('has no more than a full one where the limit was larger', () => {
    expect(levelAt({ level: fullLevel(600), at: 0 }, 60, 0)).toBe(fullLevel(60))
  })

  test('lets in what it has, and makes wait until it has it', () => {
    expect(waitMs(levelPerUnit, 60, 1)).toBe(0)
    expect(waitMs(levelPerUnit - 1, 60, 1)).toBe(1)
    expect(waitMs(-levelPerUnit, 60, 1)).toBe(2_000)
  })

  test('lets in what is larger than itself when it is full', () => {
    expect(waitMs(fullLevel(60), 60, 1_000)).toBe(0)
    expect(waitMs(fullLevel(60) - 1, 60, 1_000)).toBe(1)
  })

  test('lets in what costs nothing, though it is in debt', () => {
    expect(waitMs(-levelPerUnit, 60, 0)).toBe(0)
  })
})

test('in doubles it is what it is in whole numbers of any size', () => {
  const limits = fc.integer({ min: 1, max: maxLimit })
  const levels = fc.tuple(limits, fc.double({ min: -1, max: 1, noNaN: true }))

  fc.assert(
    fc.property(levels, fc.nat(1e9), fc.nat(1e13), ([limit, share], units, elapsed) => {
      const level = Math.trunc(share * fullLevel(limit))
      const [full, perMs] = [BigInt(fullLevel(limit)), BigInt(limit)]
      const filled = BigInt(level) + BigInt(elapsed) * perMs
      const enough = BigInt(units) * BigInt(levelPerUnit) < full ? BigInt(units) * BigInt(levelPerUnit) : full
      const ceilDivide = (a: bigint) => (a <= 0n ? 0n : (a + perMs - 1n) / perMs)

      expect(BigInt(levelAt({ level, at: 0 }, limit, elapsed))).toBe(filled < full ? filled : full)
      expect(BigInt(waitMs(level, limit, units))).toBe(units === 0 ? 0n : ceilDivide(enough - BigInt(level)))
      expect(BigInt(resetMs(level, limit))).toBe(ceilDivide(full - BigInt(level)))
    }),
    { numRuns: 2_000 },
  )
})
