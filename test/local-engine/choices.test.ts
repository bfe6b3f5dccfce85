/** Several answers to one prompt: the model evaluates the prompt once. */
import { collect, createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { GenerateRequest } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { internals } from '../../packages/core/src/llm.ts'
import { emptyFolder } from '../support/empty-folder.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 2_048, promptCache: 0 } })
  await llm.load('tiny')
})
afterAll(() => llm.close())

const requestOf = (text: string, seed: number): GenerateRequest => ({
  model: 'tiny',
  input: { kind: 'text', prompt: [text], template: false },
  maxTokens: 24,
  sampling: { seed, temperature: 1 },
})

/** Resolves with the answers of one call with this many answers. */
async function ask(text: string, count: number): Promise<readonly GenerateResult[]> {
  const client = llm[internals].clientOf({ id: text.slice(0, 8) } as never, { dialect: 'test' })
  const requests = Array.from({ length: count }, (_, index) => requestOf(text, index))
  const group = await client.generateGroup(requests, { answersPerPrompt: count })
  return Promise.all(requests.map(async (_, index) => collect(await group.start(index))))
}

test('the bias of a text is that of each of its tokens', async () => {
  const tokens = await llm.tokenize({ text: 'apple pie', parseSpecial: false })
  const answer = async (
    logitBias: NonNullable<GenerateRequest['sampling']>['logitBias'],
  ): Promise<string> => {
    const request = requestOf('Once', 1)
    const generation = await llm.generate({
      ...request,
      maxTokens: 6,
      sampling: { seed: 1, ...(logitBias && { logitBias }) },
    })
    return (await collect(generation)).text
  }

  const biased = await answer([['apple pie', 100]])

  expect(biased).toBe(await answer(tokens.map((token) => [token, 100] as const)))
  expect(biased).not.toBe(await answer([]))
})

const story = (name: string): string => `${name} went home. `.repeat(40)

test('further answers reuse the prompt of the first one, and equal those that are generated alone', async () => {
  const text = story('Mia')

  const answers = await ask(text, 3)

  const alone = await Promise.all(
    [0, 1, 2].map(async (seed) =>
      collect(await llm.generate(requestOf(text, seed), { caller: { id: `${seed}` } })),
    ),
  )
  const [first, ...others] = answers.map(({ usage }) => usage)
  expect(first?.reusedTokens).toBe(0)
  for (const { reusedTokens, inputTokens } of others) {
    expect(inputTokens - reusedTokens).toBeGreaterThan(0)
    expect(inputTokens - reusedTokens).toBeLessThanOrEqual(64)
  }
  expect(answers.map(({ text }) => text)).toEqual(alone.map(({ text }) => text))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(3)
})

test('more answers than slots wait for each other, and reuse the prompt, too', async () => {
  const answers = await ask(story('Ben'), 8)

  const reused = answers.slice(1).map(({ usage }) => usage.inputTokens - usage.reusedTokens)
  expect(Math.max(...reused)).toBeLessThanOrEqual(64)
})
