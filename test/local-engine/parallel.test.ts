/** Parallel answers: no answer waits for another one or changes it. */
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

interface AskOptions {
  readonly seed?: number
  readonly temperature?: number
  readonly maxTokens?: number
  readonly caller?: string
  readonly model?: string
}

async function ask(
  text: string,
  { seed, temperature = 1, maxTokens = 40, caller = 'ann', model = 'tiny' }: AskOptions = {},
): Promise<Pick<GenerateResult, 'text' | 'usage'>> {
  let output = ''
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
    if (event.type === 'text') output += event.text
    if (event.type === 'end') return { text: output, usage: event.usage }
  }
  throw new Error('The answer did not end.')
}

/** A prompt of several chunks. */
const book = (chapter: number): string =>
  `Chapter ${chapter}. ${Array.from({ length: 60 }, (_, word) => `word${(chapter * 7 + word) % 13}`).join(' ')}`

test('a short answer does not wait for a long one that began earlier', async () => {
  const order: string[] = []

  await Promise.all([
    llm
      .chat('Tell me a story.', { model: 'noise', temperature: 0, maxTokens: 800 })
      .then(() => order.push('long')),
    llm.chat('Hello', { model: 'noise', maxTokens: 3 }).then(() => order.push('short')),
  ])

  expect(order).toEqual(['short', 'long'])
})

test('the tokens of parallel streams are interleaved', async () => {
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

test('answers with a seed are the same alone and in parallel, with f16 weights', async () => {
  const seeds = Array.from({ length: 24 }, (_, seed) => seed)
  const one = (seed: number, caller: string) =>
    ask(`Hello ${seed}`, { seed, caller, model: 'noise' }).then(({ text }) => text)
  const alone: string[] = []
  for (const seed of seeds) alone.push(await one(seed, 'alone'))

  const beside = await Promise.all(seeds.map((seed) => one(seed, 'beside')))

  expect(beside).toEqual(alone)
})

test('more concurrent calls than slots all get an answer', async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      ask(book(index), { seed: 5, maxTokens: 3, caller: `caller ${index % 7}` }),
    ),
  )

  expect(answers.every(({ usage }) => usage.outputTokens > 0)).toBe(true)
})

test('the first event of an answer is start, and the last one is end', async () => {
  const events: GenerateEvent['type'][] = []
  const generation = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: [book(40)] }, maxTokens: 1 },
    { signal: new AbortController().signal },
  )
  for await (const { type } of generation) events.push(type)

  expect(events[0]).toBe('start')
  expect(events.at(-1)).toBe('end')
})
