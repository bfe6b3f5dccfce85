/** Answers side by side: none waits for another, and none changes another. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { GenerateEvent } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  llm = await createLlm({ models: folder, local: { contextSize: 2048, parallel: 5 } })
  await llm.load('tiny')
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

interface Asked {
  readonly seed?: number
  readonly temperature?: number
  readonly maxTokens?: number
  readonly caller?: string
  readonly model?: string
}

async function ask(
  text: string,
  { seed, temperature = 1, maxTokens = 40, caller = 'ann', model = 'tiny' }: Asked = {},
): Promise<Pick<GenerateResult, 'text' | 'usage'>> {
  let said = ''
  const generation = await llm.generate(
    {
      model,
      input: { kind: 'text', prompt: [text] },
      maxTokens,
      sampling: { temperature, topK: 0, topP: 1, minP: 0, ...(seed !== undefined && { seed }) },
    },
    { signal: new AbortController().signal, caller: { id: caller } },
  )
  for await (const event of generation) {
    if (event.type === 'text') said += event.text
    if (event.type === 'end') return { text: said, usage: event.usage }
  }
  throw new Error('The answer did not end.')
}

/** Reading it takes several chunks. */
const book = (chapter: number): string =>
  `Chapter ${chapter}. ${Array.from({ length: 60 }, (_, word) => `word${(chapter * 7 + word) % 13}`).join(' ')}`

test('a short answer does not wait for a long one that began before', async () => {
  const order: string[] = []

  await Promise.all([
    llm
      .chat('Tell me a story.', { model: 'noise', temperature: 0, maxTokens: 800 })
      .then(() => order.push('long')),
    llm.chat('Hello', { model: 'noise', maxTokens: 3 }).then(() => order.push('short')),
  ])

  expect(order).toEqual(['short', 'long'])
})

test('streams take turns, token by token', async () => {
  const order: string[] = []
  const read = async (name: string): Promise<void> => {
    const options = { model: 'noise', temperature: 0, maxTokens: 50, stream: true } as const
    for await (const _piece of llm.chat('Tell me a story.', options)) order.push(name)
  }

  await Promise.all(['a', 'b', 'c', 'd'].map(read))

  const firstHalf = order.slice(0, order.length / 2)
  for (const name of ['a', 'b', 'c', 'd'])
    expect(firstHalf.filter((one) => one === name).length).toBeGreaterThan(5)
})

test('with a seed an answer is the same alone and beside others where weights are f16, too', async () => {
  const seeds = Array.from({ length: 24 }, (_, seed) => seed)
  const one = (seed: number, caller: string) =>
    ask(`Hello ${seed}`, { seed, caller, model: 'noise' }).then(({ text }) => text)
  const alone: string[] = []
  for (const seed of seeds) alone.push(await one(seed, 'alone'))

  const beside = await Promise.all(seeds.map((seed) => one(seed, 'beside')))

  expect(beside).toEqual(alone)
})

test('more calls than there are places all get their answer', async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      ask(book(index), { seed: 5, maxTokens: 3, caller: `caller ${index % 7}` }),
    ),
  )

  expect(answers.every(({ usage }) => usage.outputTokens > 0)).toBe(true)
})

test('an answer begins with its start, before its prompt is read', async () => {
  const events: GenerateEvent['type'][] = []
  const generation = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: [book(40)] }, maxTokens: 1 },
    { signal: new AbortController().signal },
  )
  for await (const { type } of generation) events.push(type)

  expect(events[0]).toBe('start')
  expect(events.at(-1)).toBe('end')
})
