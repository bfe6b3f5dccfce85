import { getLlama, type Llama, LlamaLogLevel, type LlamaOptions } from 'node-llama-cpp'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { config } from '../../../../../../../test/support/bindings.ts'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { encoderModel } from '../../../../../../../test/support/models.ts'
import { Turns } from '../workers/turns.ts'
import { openVocabulary } from './vocabulary.ts'

const options: LlamaOptions = { build: 'never', skipDownload: true, progressLogs: false, maxThreads: 1 }
let llama: Llama

beforeAll(async () => {
  llama = await getLlama({ ...options, logLevel: LlamaLogLevel.error })
})
afterAll(() => llama.dispose())

test.each([
  ['word pieces', encoderModel, 30_522, ['[UNK]', '[CLS]', '[SEP]']],
  ['the built-in model', config.modelPath, 1_536, ['<|im_start|>', '<|im_end|>']],
])(
  'the vocabulary of %s is read once, for the first template that needs special tokens',
  async (_of, modelPath, size, some) => {
    const model = await llama.loadModel({ modelPath, vocabOnly: true })
    const passes = vi.spyOn(model, 'iterateAllTokens')

    const { vocabularySize, template } = openVocabulary(model, modelPath, 512, { steps: 0 }, new Turns())

    expect(vocabularySize).toBe(size)
    expect(passes).not.toHaveBeenCalled()
    // Render workers get a structured clone of the template.
    for (const { specialTokens } of [structuredClone(template), template])
      expect(specialTokens).toEqual(expect.arrayContaining(some))
    expect(passes).toHaveBeenCalledTimes(1)
  },
)

test('each slice of a text counts as progress, so that a long text is not taken for a hang', async () => {
  const model = await llama.loadModel({ modelPath: config.modelPath, vocabOnly: true })
  const progress = { steps: 0 }
  const { tokenize } = openVocabulary(model, config.modelPath, 1_000_000, progress, new Turns())
  const before = progress.steps

  await tokenize('word '.repeat(40_000), budgetOf())

  expect(progress.steps - before).toBeGreaterThan(5)
})
