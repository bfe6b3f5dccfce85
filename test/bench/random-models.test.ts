/** The models with random weights that the benchmark of graphics cards makes. */
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'
import { expect, onTestFinished, test } from 'vitest'
import { keepTokenizer, makeModel } from '../../bench/gpu/gguf.mjs'
import { emptyFolder } from '../support/empty-folder.ts'

const folder = emptyFolder()

test('the real engine loads a made model and generates', async () => {
  const tokenizer = join(folder, 'tokenizer')
  keepTokenizer(modelPath, tokenizer)
  makeModel({ tokenizer, shape: 'tiny', path: join(folder, 'made.gguf') })
  const llm = await createLlm({ models: folder })
  onTestFinished(() => llm.close())

  const { usage, finishReason } = await llm.chat('Hello', { model: 'made', maxTokens: 5, ignoreEos: true })

  expect(finishReason).toBe('length')
  // The made model has the vocabulary of the built-in one, in which this prompt has 10 tokens.
  expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 5 })
})
