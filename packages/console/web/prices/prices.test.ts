import { expect, test } from 'vitest'
import { describePrice, formatPrice, listNames, priceOf, unpricedAmong } from './prices.ts'

const tiny = { model: 'tiny', inputPerMillionUsd: 0.075, outputPerMillionUsd: 2 }
const others = { model: '*', inputPerMillionUsd: 0, outputPerMillionUsd: 0 }
const report = { data: [others, tiny], unpricedModels: ['big:latest', 'small:1b'] }

test('a model has its own price, with or without its tag, else that of all others', () => {
  expect(priceOf(report, 'tiny:latest')).toBe(tiny)
  expect(priceOf(report, 'tiny:8b')).toBe(others)
  expect(priceOf({ ...report, data: [tiny] }, 'big')).toBeUndefined()
})

test('a key is warned about the models that it may use', () => {
  expect(unpricedAmong(report, [])).toEqual(['big:latest', 'small:1b'])
  expect(unpricedAmong(report, ['big', 'tiny'])).toEqual(['big:latest'])
})

test('prices are exact', () => {
  expect(formatPrice(tiny)).toBe('$0.075 in, $2.00 out')
  expect(formatPrice(others)).toBe('Free')
  expect(describePrice(tiny)).toBe('$0.075 input, $2.00 output, $0.0075 from the cache')
  expect(describePrice({ ...tiny, cachedInputPerMillionUsd: 0, cacheWritePerMillionUsd: 0.1 })).toBe(
    '$0.075 input, $2.00 output, $0.00 from the cache, $0.10 to write to the cache',
  )
})

test.each([
  [['a'], 'a'],
  [['a', 'b'], 'a and b'],
  [['a', 'b', 'c', 'd', 'e', 'f'], 'a, b, c, d, e and f'],
  [['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'a, b, c, d, e and 2 others'],
])('%j is listed as %s', (names, text) => {
  expect(listNames(names)).toBe(text)
})
