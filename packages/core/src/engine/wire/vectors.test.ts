import { expect, test } from 'vitest'
import { decodeVector, encodeVector } from './vectors.ts'

test('vectors are encoded as 32-bit numbers', () => {
  const vector = [0, -1, 0.5, Math.fround(0.1), 3.4e38]

  expect(decodeVector(encodeVector(vector))).toEqual(vector.map(Math.fround))
  expect(decodeVector('')).toEqual([])
})
