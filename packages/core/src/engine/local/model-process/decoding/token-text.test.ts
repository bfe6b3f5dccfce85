import { modelPath } from '@modelmount/tiny-model'
import { getLlama, type LlamaModel, type Token } from 'node-llama-cpp'
import { describe, expect, test } from 'vitest'
import { noiseModel } from '../../../../../../../test/support/models.ts'
import { tokenText, toSampledToken } from './token-text.ts'

const text = 'Hello, what is 2 + 3?\n\n\tÉcris : "été" 你好 🍂👩‍🚀 \u00ad\u00a0end'

/** The vocabulary of a model, as the engine sees it. */
async function vocabularyOf(path: string) {
  const llama = await getLlama({ build: 'never', progressLogs: false })
  const model: LlamaModel = await llama.loadModel({ modelPath: path, vocabOnly: true })
  return {
    tokenize: (text: string) => model.tokenize(text),
    detokenize: (tokens: readonly Token[], before: readonly Token[], withControl = false) =>
      model.detokenize(tokens, withControl, before),
    vocabularyTextOf: (token: Token) => model.fileInfo.metadata.tokenizer?.ggml?.tokens?.[token] ?? '',
  }
}

describe.each([
  ['byte-level', modelPath],
  ['with tokens for bytes', noiseModel],
])('a vocabulary %s', (_, path) => {
  test('gives the bytes of a text, token by token', async () => {
    const vocabulary = await vocabularyOf(path)

    const tokens = vocabulary.tokenize(text).map((token) => tokenText(token, vocabulary))

    const bytes = Buffer.from(tokens.flatMap(({ bytes }) => bytes)).toString()
    expect(bytes.trimStart()).toBe(text)
    // Some characters consist of several tokens. Such a token is not a character.
    expect(tokens.some(({ text }) => text === '\uFFFD')).toBe(true)
  })
})

test('a token is reported with the most likely tokens, in order', () => {
  const vocabulary = { detokenize: ([id]: readonly Token[]) => `<${id}>`, vocabularyTextOf: () => '' }
  const odds = { logprob: -1, top: [[1, -0.5] as const, [2, -1] as const] as [Token, number][] }

  expect(toSampledToken(2 as Token, odds, vocabulary)).toEqual({
    ...{ id: 2, text: '<2>', bytes: [60, 50, 62], logprob: -1 },
    top: [
      { id: 1, text: '<1>', bytes: [60, 49, 62], logprob: -0.5 },
      { id: 2, text: '<2>', bytes: [60, 50, 62], logprob: -1 },
    ],
  })
})

test('an unknown byte notation keeps its replacement characters', () => {
  const vocabulary = { detokenize: () => '\uFFFD', vocabularyTextOf: () => '語' }

  expect(tokenText(1 as Token, vocabulary)).toEqual({ text: '\uFFFD', bytes: [0xef, 0xbf, 0xbd] })
})
