import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { Detokenizer } from './detokenize.ts'

/** A model whose token ids are bytes. */
const bytes = { detokenize: (tokens: readonly Token[]) => Buffer.from(tokens).toString() }
const tokens = (text: string): Token[] => [...Buffer.from(text)] as Token[]

test('a token of whole characters is emitted at once', () => {
  const detokenizer = new Detokenizer(bytes, [])

  const texts = tokens('Hi!').map((token) => detokenizer.push(token))

  expect(texts).toEqual(['H', 'i', '!'])
  expect(detokenizer.flush()).toBe('')
})

test('a character is emitted with its last token', () => {
  const detokenizer = new Detokenizer(bytes, [])

  const texts = tokens('aü😀b').map((token) => detokenizer.push(token))

  expect(texts).toEqual(['a', '', 'ü', '', '', '', '😀', 'b'])
})

test('a character that is never completed is dropped', () => {
  const detokenizer = new Detokenizer(bytes, [])
  const texts = tokens('a😀')
    .slice(0, 3)
    .map((token) => detokenizer.push(token))

  const rest = detokenizer.flush()

  expect(texts).toEqual(['a', '', ''])
  expect(rest).toBe('')
})

test('whole characters are emitted at once, and an incomplete end is held back', () => {
  const detokenizer = new Detokenizer({ detokenize: (held) => (held.length > 0 ? 'ok\uFFFD' : '') }, [])

  expect([detokenizer.push(1 as Token), detokenizer.flush()]).toEqual(['ok', ''])
})

test('no character is lost if a token ends one character and begins the next', () => {
  const whole = Buffer.from('a😀😁あいうえ')
  const size = 3
  const detokenize = (held: readonly Token[]) =>
    Buffer.concat(held.map((at) => whole.subarray(at * size, (at + 1) * size))).toString()
  const detokenizer = new Detokenizer({ detokenize }, [])

  const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
    detokenizer.push(at as Token),
  )

  expect(pieces.join('') + detokenizer.flush()).toBe('a😀😁あいうえ')
})

test('bytes that are not a character are emitted after four tokens instead of waiting forever', () => {
  const detokenizer = new Detokenizer(bytes, [])

  const texts = [0x80, 0x80, 0x80, 0x80, 0x61].map((byte) => detokenizer.push(byte as Token))

  expect(texts).toEqual(['', '', '', '\uFFFD\uFFFD\uFFFD\uFFFD', 'a'])
})

test('a text with a replacement character inside is emitted at once', () => {
  const model = { detokenize: () => 'a\uFFFDb' }

  const text = new Detokenizer(model, []).push(1 as Token)

  expect(text).toBe('a\uFFFDb')
})

test('the tokenizer gets the eight preceding tokens, from the prompt and then from the output', () => {
  const seen: (readonly Token[])[] = []
  const model = {
    detokenize: (held: readonly Token[], before: readonly Token[]) => {
      seen.push(before)
      return `<${held.join()}>`
    },
  }
  const detokenizer = new Detokenizer(model, [1, 2, 3, 4, 5, 6, 7, 8, 9] as Token[])

  detokenizer.push(10 as Token)
  detokenizer.push(11 as Token)

  expect(seen).toEqual([
    [2, 3, 4, 5, 6, 7, 8, 9],
    [3, 4, 5, 6, 7, 8, 9, 10],
  ])
})

test('pending tokens are not among the preceding tokens', () => {
  const calls: unknown[] = []
  const model = {
    detokenize: (held: readonly Token[], before: readonly Token[]) => {
      calls.push([[...held], [...before]])
      return held.length < 2 ? '\uFFFD' : 'ü'
    },
  }
  const detokenizer = new Detokenizer(model, [7] as Token[])

  detokenizer.push(8 as Token)
  detokenizer.push(9 as Token)
  detokenizer.push(10 as Token)

  expect(calls).toEqual([
    [[8], [7]],
    [[8, 9], [7]],
    [[10], [7, 8, 9]],
  ])
})
