/** What was read before is not read again: for whom, and how much of it. */
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'

const models = emptyFolder()
let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models })
  await llm.load('tiny')
})

afterAll(() => llm.close())

/** About 1,500 tokens, others for each book. */
const book = (number: number): string =>
  Array.from({ length: 71 }, (_, line) => `Book ${number}, note ${line}: see box ${line * 7}.`).join('\n')

async function ask(
  text: string,
  caller: string,
  seed?: number,
): Promise<Pick<GenerateResult, 'usage' | 'timings'>> {
  const generation = await llm.generate(
    {
      model: 'tiny',
      input: { kind: 'text', prompt: [text] },
      maxTokens: 1,
      sampling: { temperature: 1, ...(seed !== undefined && { seed }) },
    },
    { signal: new AbortController().signal, caller: { id: caller } },
  )
  for await (const event of generation) if (event.type === 'end') return event
  throw new Error('The answer did not end.')
}

test('without a seed only what is new is read', async () => {
  const cold = await ask(`${book(1)}\nWhere is box 7?`, 'ann')
  const warm = await ask(`${book(1)}\nWhere is box 14?`, 'ann')
  const again = await ask(`${book(1)}\nWhere is box 14?`, 'ann')

  expect(cold.usage.reusedTokens).toBe(0)
  expect(cold.usage.inputTokens).toBeGreaterThan(1_400)
  expect(warm.usage.inputTokens - warm.usage.reusedTokens).toBeLessThan(20)
  expect(again.usage.inputTokens - again.usage.reusedTokens).toBe(1)
  expect(warm.timings.promptMs).toBeLessThan(cold.timings.promptMs / 2)
})

test('with a seed it is cut to whole chunks of 64', async () => {
  const cold = await ask(`${book(2)}\nWhere is box 7?`, 'ann', 1)
  const warm = await ask(`${book(2)}\nWhere is box 14?`, 'ann', 1)
  const { inputTokens, reusedTokens } = warm.usage

  expect(reusedTokens % 64).toBe(0)
  expect(inputTokens - reusedTokens).toBeLessThan(64 + 20)
  expect(warm.timings.promptMs).toBeLessThan(cold.timings.promptMs / 2)
})

test('nothing of one caller is reused for another, and the time does not tell of it either', async () => {
  const cold = await ask(book(3), 'ann')
  const other = await ask(book(3), 'ben')
  const own = await ask(book(3), 'ann')

  expect(other.usage.reusedTokens).toBe(0)
  expect(other.timings.promptMs).toBeGreaterThan(cold.timings.promptMs / 2)
  expect(own.usage.reusedTokens).toBe(own.usage.inputTokens - 1)
})
