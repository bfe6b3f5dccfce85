/** With a seed an answer is the same each time: alone, beside others and other models, read anew and read before. */
import { copyFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import type { Message } from '@modelmount/core/engine'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { times } from '../support/scale.ts'

const models = emptyFolder()
let llm: Llm

beforeAll(async () => {
  // More places than calls at a time: what was read is still there when it comes again.
  llm = await createLlm({ models, local: { contextSize: 2048, parallel: 10 } })
  await llm.load('tiny')
})

afterAll(() => llm.close())

interface Said {
  readonly text: string
  readonly reused: number
}

async function ask(
  messages: readonly Message[],
  caller: string,
  {
    seed,
    maxTokens = 24,
    by = llm,
  }: { readonly seed?: number; readonly maxTokens?: number; readonly by?: Llm },
): Promise<Said> {
  // Every token may be drawn: the smallest difference shows.
  const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, ...(seed !== undefined && { seed }) }
  const generation = await by.generate(
    { model: 'tiny', input: { kind: 'chat', messages }, maxTokens, sampling },
    { signal: new AbortController().signal, caller: { id: caller } },
  )
  let text = ''
  for await (const event of generation) {
    if (event.type === 'text') text += event.text
    if (event.type === 'end') return { text, reused: event.usage.reusedTokens }
  }
  throw new Error('The answer did not end.')
}

/** As many at a time as said, in order. */
async function sideBySide<T>(count: number, width: number, job: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) results[index] = await job(index)
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}

const message = (role: string, text: string): Message => ({ role, content: [{ type: 'text', text }] })
/** The model writes stories in many ways, and hardly anything else. */
const story = (about: string): Message => message('user', `Write a short story about ${about}.`)
const notes = (count: number, first: number): Message =>
  message(
    'system',
    Array.from({ length: count }, (_, note) => `Note ${first + note}: box ${7 * first + note}.`).join(' '),
  )

describe(`${times(48, 8)} prompts at temperature 1`, () => {
  const count = times(48, 8)
  /** From one chunk to three. */
  const prompt = (index: number): Message[] => [notes(5 + (index % 4) * 4, index), story(`Ben ${index}`)]
  let alone: string[]

  beforeAll(async () => {
    const said = await sideBySide(count, 1, (index) => ask(prompt(index), `alone ${index}`, { seed: index }))
    alone = said.map(({ text }) => text)
  })

  test('get answers of which hardly two are the same', () => {
    expect(new Set(alone).size).toBeGreaterThan(0.8 * count)
  })

  /** An answer without a seed comes first, of the same caller or of another. */
  const answers = (neighbours: number, before: 'new' | 'known'): Promise<Said[]> =>
    sideBySide(count, neighbours + 1, async (index) => {
      const caller = `${before} ${index} beside ${neighbours}`
      await ask(prompt(index), before === 'known' ? caller : 'somebody', { maxTokens: 8 })
      return ask(prompt(index), caller, { seed: index })
    })

  test.each([1, 4])('are answered as alone beside %i others', async (neighbours) => {
    const said = await answers(neighbours, 'new')

    expect(said.map(({ text }) => text)).toEqual(alone)
    expect(said.filter(({ reused }) => reused > 0)).toEqual([])
  })

  test.each([0, 1, 4])('that were read before are, beside %i others', async (neighbours) => {
    const said = await answers(neighbours, 'known')

    expect(said.map(({ text }) => text)).toEqual(alone)
    expect(said.filter(({ reused }) => reused === 0 || reused % 64 > 0)).toEqual([])
  })
})

describe(`${times(10, 2)} conversations of four turns at temperature 1`, () => {
  const count = times(10, 2)
  const subjects = ['Ada', 'a fox', 'the sea', 'a robot']

  async function talk(index: number, callerIn: (turn: number) => string): Promise<Said[]> {
    const messages: Message[] = [notes(4, index)]
    const said: Said[] = []
    for (const [turn, subject] of subjects.entries()) {
      messages.push(story(subject))
      const answer = await ask([...messages], callerIn(turn), { seed: 10 * index + turn, maxTokens: 48 })
      messages.push(message('assistant', answer.text))
      said.push(answer)
    }
    return said
  }
  const textsOf = (talks: readonly Said[][]): string[][] => talks.map((said) => said.map(({ text }) => text))
  let alone: string[][]

  beforeAll(async () => {
    const talks = await sideBySide(count, 1, (index) => talk(index, (turn) => `alone ${index}, ${turn}`))
    alone = textsOf(talks)
  })

  test.each([1, 4])('go as alone beside %i others when each turn is new', async (neighbours) => {
    const talks = await sideBySide(count, neighbours + 1, (index) =>
      talk(index, (turn) => `new ${index}, ${turn}, beside ${neighbours}`),
    )

    expect(textsOf(talks)).toEqual(alone)
    expect(talks.flat().filter(({ reused }) => reused > 0)).toEqual([])
  })

  test.each([0, 1, 4])('go as alone beside %i others when the turns before are known', async (neighbours) => {
    const talks = await sideBySide(count, neighbours + 1, (index) =>
      talk(index, () => `known ${index} beside ${neighbours}`),
    )

    expect(textsOf(talks)).toEqual(alone)
    expect(talks.flatMap((said) => said.slice(1)).filter(({ reused }) => reused === 0)).toEqual([])
  })
})

describe.runIf(availableParallelism() > 1)('while another model is busy, and the cores are shared', () => {
  const count = times(48, 4)
  const folder = emptyFolder()
  let both: Llm

  beforeAll(async () => {
    await copyFile(noiseModel, join(folder, 'other.gguf'))
    both = await createLlm({ models: folder, local: { contextSize: 2048, threads: availableParallelism() } })
  })

  afterAll(() => both.close())

  /** Long enough for the attention of one token to be split among the threads. */
  const prompt = (index: number): Message[] => [notes(30 + (index % 4) * 10, index), story(`Ben ${index}`)]
  const answers = (callerOf: (index: number) => string): Promise<Said[]> =>
    sideBySide(count, 2, (index) => ask(prompt(index), callerOf(index), { seed: index, by: both }))
  const textsOf = (said: readonly Said[]): string[] => said.map(({ text }) => text)

  test(`${count} long prompts are answered as alone, cold and warm`, async () => {
    const alone = textsOf(await answers((index) => `alone ${index}`))
    await both.load('other')
    let isOver = false
    const other = (async () => {
      while (!isOver) await both.chat('Hello', { model: 'other', maxTokens: 1_000 })
    })()

    const cold = await answers((index) => `beside another model ${index}`)
    const warm = await answers((index) => `beside another model ${index}`)

    isOver = true
    await other
    expect(textsOf(cold)).toEqual(alone)
    expect(textsOf(warm)).toEqual(alone)
  }, 240_000)
})
