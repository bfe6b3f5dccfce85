import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fullLevel, levelAfter, levelAt, maxLevel, minuteMs, resetMs, waitMs } from './bucket.ts'

const perMinute = (limit: number) => ({ limit, windowMs: minuteMs })

describe('a bucket of 60 per minute', () => {
  const size = perMinute(60)
  const empty = { level: 0, at: 1_000 }

  test('gets one unit each second', () => {
    expect(levelAt(empty, size, 1_999)).toBe(minuteMs - 60)
    expect(levelAt(empty, size, 2_000)).toBe(minuteMs)
  })

  test('is full after a minute, and no fuller after a day', () => {
    expect(levelAt(empty, size, 61_000)).toBe(fullLevel(size))
    expect(levelAt(empty, size, 86_401_000)).toBe(fullLevel(size))
  })

  test('counts no time when the clock was set back', () => {
    expect(levelAt({ level: 5, at: 1_000 }, size, 0)).toBe(5)
  })

  test('is at most full after its limit was lowered', () => {
    expect(levelAt({ level: fullLevel(perMinute(600)), at: 0 }, size, 0)).toBe(fullLevel(size))
  })

  test('admits units up to its level, and returns the wait for more', () => {
    expect(waitMs(minuteMs, size, 1)).toBe(0)
    expect(waitMs(minuteMs - 1, size, 1)).toBe(1)
    expect(waitMs(-minuteMs, size, 1)).toBe(2_000)
  })

  test('admits a cost above its size when it is full', () => {
    expect(waitMs(fullLevel(size), size, 1_000)).toBe(0)
    expect(waitMs(fullLevel(size) - 1, size, 1_000)).toBe(1)
  })

  test('admits a cost of 0 while it is in debt', () => {
    expect(waitMs(-minuteMs, size, 0)).toBe(0)
  })
})

test('a bucket of 3 per day is empty after three calls and full a day later', () => {
  const day = 86_400_000
  const size = { limit: 3, windowMs: day }

  const level = levelAfter(fullLevel(size), size, 3)

  expect(level).toBe(0)
  expect(waitMs(level, size, 1)).toBe(day / 3)
  expect(levelAt({ level, at: 0 }, size, day / 3)).toBe(day)
  expect(levelAt({ level, at: 0 }, size, day)).toBe(fullLevel(size))
})

test('a debt ends where doubles are no longer exact', () => {
  const size = { limit: 1, windowMs: 31_622_400_000 }

  expect(levelAfter(0, size, 1e9)).toBe(Number.MIN_SAFE_INTEGER)
})

test('arithmetic in doubles equals arithmetic in whole numbers of any size', () => {
  const sizes = fc
    .integer({ min: 1, max: 31_622_400_000 })
    .chain((windowMs) =>
      fc.integer({ min: 1, max: Math.floor(maxLevel / windowMs) }).map((limit) => ({ limit, windowMs })),
    )
  const levels = fc.tuple(sizes, fc.double({ min: -1, max: 1, noNaN: true }))

  fc.assert(
    fc.property(levels, fc.nat(1e9), fc.nat(1e13), ([size, share], units, elapsed) => {
      const level = Math.trunc(share * fullLevel(size))
      const [full, perMs, unit] = [BigInt(fullLevel(size)), BigInt(size.limit), BigInt(size.windowMs)]
      const filled = BigInt(level) + BigInt(elapsed) * perMs
      const cost = BigInt(units) * unit
      const enough = cost < full ? cost : full
      const ceilDivide = (a: bigint) => (a <= 0n ? 0n : (a + perMs - 1n) / perMs)

      expect(full).toBe(perMs * unit)
      expect(BigInt(levelAt({ level, at: 0 }, size, elapsed))).toBe(filled < full ? filled : full)
      expect(BigInt(waitMs(level, size, units))).toBe(units === 0 ? 0n : ceilDivide(enough - BigInt(level)))
      expect(BigInt(resetMs(level, size))).toBe(ceilDivide(full - BigInt(level)))
    }),
    { numRuns: 2_000 },
  )
})
