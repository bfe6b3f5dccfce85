import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Line, readLines } from './lines.ts'

async function read(bytes: Uint8Array, size = bytes.length || 1, maxBytes = 1_000): Promise<Line[]> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
  }
  const lines: Line[] = []
  for await (const line of readLines(chunks(), maxBytes)) lines.push(line)
  return lines
}

test('lines keep their numbers, wherever the chunks end', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[a-zß🦊"{}]{0,12}$/u)),
      fc.integer({ min: 1, max: 9 }),
      async (texts, size) => {
        const found = await read(Buffer.from(texts.map((text) => `${text}\n`).join('')), size)

        expect(found).toEqual(texts.map((text, index) => ({ number: index + 1, text })))
      },
    ),
  ))

test('a last line without a line break counts, and one with a line break is no further line', async () => {
  expect((await read(Buffer.from('a\nb'))).map(({ text }) => text)).toEqual(['a', 'b'])
  expect((await read(Buffer.from('a\nb\n'))).map(({ text }) => text)).toEqual(['a', 'b'])
})

test('carriage returns and a byte order mark are no part of a line', async () => {
  expect(await read(Buffer.from('\uFEFFa\r\n\r\nb\r\n'))).toEqual([
    { number: 1, text: 'a' },
    { number: 2, text: '' },
    { number: 3, text: 'b' },
  ])
})

test('a line that is too long or not UTF-8 is named', async () => {
  await expect(read(Buffer.from(`a\n${'x'.repeat(1_001)}`), 100)).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'Line 2 is longer than 1000 bytes.',
  })
  await expect(read(Buffer.from([0x61, 0x0a, 0xff, 0x0a]))).rejects.toMatchObject({
    message: 'Line 2 is not valid UTF-8.',
  })
})
