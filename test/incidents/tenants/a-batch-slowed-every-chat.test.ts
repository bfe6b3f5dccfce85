/**
 * C-7: batches ran beside other calls without isolation. They made these slow and unstable, and were removed. Here, they
 * use what other calls leave free. `bench/batches.mjs` measures how much slower a stream is.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm, type Llm } from '@modelmount/core'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'

const items = 1_000
const models = emptyFolder()
const database = join(emptyFolder(), 'modelmount.db')
/** The built-in model repeats words, so an answer has dozens of tokens. */
const words = 'one two three four five six seven eight nine ten '

interface Chat {
  readonly firstTokenMs: number
  readonly outputTokens: number
}

async function chat(llm: Llm, number: number, maxTokens: number): Promise<Chat> {
  const startedAt = performance.now()
  const content = [{ type: 'text' as const, text: `Hello, this is chat ${number}.` }]
  const request = {
    model: 'tiny',
    input: { kind: 'chat' as const, messages: [{ role: 'user', content }] },
    ...{ maxTokens, sampling: { ignoreEos: true } },
  }
  const { signal } = new AbortController()
  let firstTokenMs = Number.POSITIVE_INFINITY
  let outputTokens = 0
  for await (const event of await llm.generate(request, { signal, caller: { id: 'ann' }, stream: true }))
    if (event.type === 'text') firstTokenMs = Math.min(firstTokenMs, performance.now() - startedAt)
    else if (event.type === 'end') outputTokens = event.usage.outputTokens
  return { firstTokenMs, outputTokens }
}

/** Chats one after the other. */
async function chats(llm: Llm): Promise<readonly Chat[]> {
  const all: Chat[] = []
  while (all.length < 30) all.push(await chat(llm, all.length, 20))
  return all
}

const medianFirstTokenMs = (all: readonly Chat[]): number =>
  all.map(({ firstTokenMs }) => firstTokenMs).sort((a, b) => a - b)[all.length >> 1] as number

test(`beside a batch of ${items} items, all chats are answered, their first tokens come soon, and the batch waits for them`, async () => {
  const llm = await createLlm({ models, database })
  onTestFinished(() => llm.close())
  await llm.load('tiny')
  const alone = await chats(llm)
  const { id } = await llm.batches.create(
    Array.from({ length: items }, (_, number) => ({
      custom_id: `item-${number}`,
      params: {
        ...{ model: 'tiny', max_tokens: 80 },
        messages: [{ role: 'user', content: `Repeat: ${words.repeat(4)}${number}` }],
      },
    })),
  )
  const countEnded = async (): Promise<number> => (await llm.batches.get(id)).counts.succeeded
  /** Runs a task, and returns how many items have ended per second meanwhile. */
  const itemsPerSecond = async (task: () => Promise<unknown>): Promise<number> => {
    const [count, startedAt] = [await countEnded(), performance.now()]
    await task()
    return ((await countEnded()) - count) / ((performance.now() - startedAt) / 1_000)
  }
  const untilEnded = async (count: number): Promise<void> => {
    while ((await countEnded()) < count) await delay(10)
  }

  await untilEnded(10)
  const beside = await chats(llm)
  const undisturbed = await itemsPerSecond(async () => untilEnded((await countEnded()) + 50))
  // More than the model decodes at once, so that nothing is left for the batch.
  const crowd: Chat[] = []
  const disturbed = await itemsPerSecond(async () =>
    crowd.push(...(await Promise.all(Array.from({ length: 8 }, (_, number) => chat(llm, number, 400))))),
  )
  await untilEnded((await countEnded()) + 20)

  expect(await llm.batches.get(id)).toMatchObject({ status: 'in_progress', counts: { errored: 0 } })
  expect(beside.map(({ outputTokens }) => outputTokens)).toEqual(Array(30).fill(20))
  expect(crowd.map(({ outputTokens }) => outputTokens)).toEqual(Array(8).fill(400))
  expect(medianFirstTokenMs(beside)).toBeLessThan(3 * medianFirstTokenMs(alone) + 100)
  expect(disturbed).toBeLessThan(undisturbed / 2)
}, 120_000)
