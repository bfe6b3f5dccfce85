import { modelPath } from '@modelmount/tiny-model'
import { getLlama, type LlamaModel, type Token } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noiseModel } from '../../../../../../../test/support/models.ts'
import { Tokenizer } from './tokenizer.ts'

const never = new AbortController().signal
const contextSize = 1_000_000

/** Prose, code, other scripts and template markup. */
const prose =
  'The quick brown fox: "jumps", 3.14 times.\n\n\tif (x) { return 1 }\n  Über naïve 东京 мир 😀👩‍👩‍👧 <|im_end|>\n<|im_start|>user\n  aaaa'
const longText = (length: number): string => {
  let text = ''
  for (let n = 0; text.length < length; n++) text += `${prose} ${n} and so on `
  return text
}

describe.each([
  ['BPE', modelPath],
  ['SPM', noiseModel],
])('%s', (_kind, path) => {
  let model: LlamaModel
  let calls: number[]
  let tokenize: (text: string) => readonly Token[]

  beforeAll(async () => {
    const llama = await getLlama({ build: 'never', skipDownload: true, progressLogs: false, maxThreads: 1 })
    model = await llama.loadModel({ modelPath: path })
    tokenize = (text) => {
      calls.push(text.length)
      return model.tokenize(text, true)
    }
  })

  afterAll(() => model.dispose())

  test.each([0, 10, 32_768, 32_769, 300_000])(
    '%d characters give the same tokens as in one go',
    async (length) => {
      calls = []
      const text = longText(length).slice(0, length)

      const tokens = await new Tokenizer(tokenize, contextSize).tokenize(text, never)

      expect(tokens).toEqual(model.tokenize(text, true))
      expect(Math.max(...calls)).toBeLessThanOrEqual(32_768)
    },
  )

  test('a text without spaces is tokenized exactly, too', async () => {
    calls = []
    const text = '东京😀'.repeat(20_000)

    const tokens = await new Tokenizer(tokenize, contextSize).tokenize(text, never)

    expect(tokens).toEqual(model.tokenize(text, true))
  })

  test('a text that is far too long is not tokenized to its end', async () => {
    calls = []
    const tokens = new Tokenizer(tokenize, 100).tokenize('a'.repeat(10_000_000), never)

    await expect(tokens).rejects.toMatchObject({ code: 'context_length' })
    expect(calls.reduce((sum, one) => sum + one, 0)).toBeLessThan(70_000)
  })
})

const letters = (text: string): readonly Token[] => [...text].map((letter) => letter.codePointAt(0) as Token)

test('one slice is tokenized per turn of the event loop, over all texts', async () => {
  let inTurn = 0
  let most = 0
  const tokenizer = new Tokenizer((text) => {
    most = Math.max(most, ++inTurn)
    setImmediate(() => {
      inTurn = 0
    })
    return letters(text)
  }, contextSize)
  inTurn = most = 0

  await Promise.all(Array.from({ length: 8 }, () => tokenizer.tokenize('word '.repeat(20_000), never)))

  expect(most).toBe(1)
})

test('a short text does not wait for all slices of a long text', async () => {
  const order: string[] = []
  const tokenizer = new Tokenizer(letters, contextSize)

  await Promise.all([
    tokenizer.tokenize('word '.repeat(50_000), never).then(() => order.push('long')),
    tokenizer.tokenize('short', never).then(() => order.push('short')),
  ])

  expect(order).toEqual(['short', 'long'])
})

test('an aborted call is not tokenized any further', async () => {
  const call = new AbortController()
  let calls = 0
  const tokenizer = new Tokenizer((text) => {
    if (++calls > 10) call.abort()
    return letters(text)
  }, contextSize)

  await tokenizer.tokenize('word '.repeat(100_000), call.signal)

  expect(calls).toBe(11)
})
