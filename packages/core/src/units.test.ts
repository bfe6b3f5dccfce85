import { expect, test } from 'vitest'
import { type ByteSize, type Duration, parseDuration, toBytes, toMs } from './units.ts'

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
  "rejects the byte size '%s'",
  (size) => {
    expect(() => toBytes(size as ByteSize)).toThrow(
      new TypeError(`Expected a byte size such as '32mb' or a number, got '${size}' (string)`),
    )
  },
)

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, null, undefined])(
  'rejects %s as a byte size',
  (size) => {
    expect(() => toBytes(size as ByteSize)).toThrow(TypeError)
  },
)

test.each<[Duration, number]>([
  [0, 0],
  [250, 250],
  ['250ms', 250],
  ['5m', 300_000],
  ['1.5h', 5_400_000],
])('%s is %i milliseconds', (duration, ms) => {
  expect(toMs(duration)).toBe(ms)
})

test.each(['', '5', '5 m', 'm', '5d', '-5m', Number.NaN, -1, null, undefined])(
  'rejects the duration %s',
  (duration) => {
    expect(() => toMs(duration as Duration)).toThrow(TypeError)
  },
)

test.each([
  ['1h30m', 5_400_000],
  ['-1m', -60_000],
  ['+2s', 2_000],
  ['.5s', 500],
  ['1.s', 1_000],
  ['1500us', 1.5],
  ['0', 0],
  ['-0', 0],
  ['', undefined],
  ['300', undefined],
  ['1h 30m', undefined],
  ['abc', undefined],
  ['1h\n', undefined],
  ['1h'.repeat(51), undefined],
  ['1.5h30m', 7_200_000],
  ['1.2.3s', undefined],
  ['.s', undefined],
  ['00s', 0],
])('parses the duration %j like Go', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test('parses a long text that is almost a duration quickly', () => {
  const startedAt = performance.now()

  expect(parseDuration('1'.repeat(100))).toBeUndefined()
  expect(parseDuration('1'.repeat(1_000_000))).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(500)
})
