import { expect, test } from 'vitest'
import { prettify, readFirstLines, resultName } from './results.ts'

const streamOf = (...chunks: readonly string[]) =>
  new Blob([...chunks]).stream() as ReadableStream<Uint8Array<ArrayBuffer>>

test('A short file is shown whole', async () => {
  expect(await readFirstLines(streamOf('{"a":1}\n', '{"a":2}'))).toEqual({
    lines: ['{"a":1}', '{"a":2}'],
    hasMore: false,
  })
})

test('A file without an end is read up to the first lines only', async () => {
  let isCanceled = false
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('{"a":1}\n{"b"')),
    cancel: () => {
      isCanceled = true
    },
  })
  const { lines, hasMore } = await readFirstLines(endless)
  expect(lines).toHaveLength(20)
  expect(hasMore).toBe(true)
  expect(isCanceled).toBe(true)
})

test('A result has the name that the client has chosen', () => {
  expect(resultName('{"custom_id":"row-7"}', 0)).toBe('row-7')
  expect(resultName('no JSON', 0)).toBe('Result 1')
})

test('Lines that are no JSON are shown as they are', () => {
  expect(prettify('{"a":1}')).toBe('{\n  "a": 1\n}')
  expect(prettify('{"a"')).toBe('{"a"')
})
