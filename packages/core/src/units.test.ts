import { expect, test } from 'vitest'
import { type ByteSize, toBytes } from './units.ts'

test.each<[ByteSize, number]>([
  [0, 0],
  [1_500, 1_500],
  ['1kb', 1_024],
  ['32mb', 33_554_432],
  ['2gb', 2_147_483_648],
  ['1.5mb', 1_572_864],
])('%s is %i bytes', (size, bytes) => {
  expect(toBytes(size)).toBe(bytes)
})

test.each(['', '32', 'mb', '32  mb', '32tb', '-1mb', '1.2.3mb', '.mb', '1.mb', '1e3mb', '32mb '])(
  "'%s' is refused by name",
  (size) => {
    expect(() => toBytes(size as ByteSize)).toThrow(
      new TypeError(`Expected a byte size such as '32mb' or a number, got '${size}' (string)`),
    )
  },
)

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, null, undefined])(
  '%s is no limit, and refused',
  (size) => {
    expect(() => toBytes(size as ByteSize)).toThrow(TypeError)
  },
)
