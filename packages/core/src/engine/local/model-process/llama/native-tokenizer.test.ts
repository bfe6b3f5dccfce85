import { getLlama, type LlamaOptions } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { config } from '../../../../../../../test/support/bindings.ts'
import { openNativeTokenizer } from './native-tokenizer.ts'

const options: LlamaOptions = { build: 'never', skipDownload: true, progressLogs: false, maxThreads: 1 }

test('tokens are those of the loaded model, with special tokens and without', async () => {
  const tokenize = await openNativeTokenizer(config.modelPath)
  const model = await (await getLlama(options)).loadModel({ modelPath: config.modelPath })
  const text = 'Hello, wörld! <|im_end|> 123'

  expect(tokenize(text, true)).toEqual(model.tokenize(text, true))
  expect(tokenize(text, false)).toEqual(model.tokenize(text, false))
  expect(tokenize(text, true)).not.toEqual(tokenize(text, false))
  await model.dispose()
})

test('a missing file is an error', async () => {
  await expect(openNativeTokenizer('/nowhere/model.gguf')).rejects.toThrow()
})
