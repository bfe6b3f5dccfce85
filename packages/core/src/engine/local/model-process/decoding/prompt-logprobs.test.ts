import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { createPromptTokenMapper } from './prompt-logprobs.ts'

/** A model whose tokens have their ids as text, with a leading space except at the start of a text. */
const model = {
  detokenize: ([id]: readonly Token[], before: readonly Token[]) => (before.length > 0 ? ` ${id}` : `${id}`),
  vocabularyTextOf: () => '',
}
const prompt = [5, 6, 7, 8] as Token[]
const odds = (...logprobs: number[]) => logprobs.map((logprob) => ({ logprob, top: [] }))
const briefly = (told: ReturnType<ReturnType<typeof createPromptTokenMapper>>) =>
  told.map(({ text, logprob }) => [text, logprob])

test('the first token has no logprob, and the others follow piece by piece', () => {
  const tell = createPromptTokenMapper(prompt, 0, model)

  expect(briefly(tell(odds(-1, -2)))).toEqual([
    ['5', null],
    [' 6', -1],
    [' 7', -2],
  ])
  expect(briefly(tell(odds(-3)))).toEqual([[' 8', -3]])
})

test('an added BOS token is not reported', () => {
  const tell = createPromptTokenMapper(prompt, 1, model)

  expect(briefly(tell(odds(-1, -2)))).toEqual([
    ['6', null],
    [' 7', -2],
  ])
  expect(briefly(tell(odds(-3)))).toEqual([[' 8', -3]])
})

test('a prompt of one token is reported without a logprob', () => {
  expect(briefly(createPromptTokenMapper(prompt.slice(0, 1), 0, model)([]))).toEqual([['5', null]])
})
