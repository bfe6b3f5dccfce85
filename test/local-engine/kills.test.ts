/** kill -9 of the model process, many times: while it loads, evaluates a prompt, generates or is idle. */
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noOrphan, openDescriptors, until } from '../support/processes.ts'
import { randomOf } from '../support/random.ts'
import { times } from '../support/scale.ts'

const models = emptyFolder()
/** Two apps, each with its own model process, because a load keeps one core busy. */
let llms: [Llm, Llm]

beforeAll(async () => {
  const withContext = (contextSize: number): Promise<Llm> => createLlm({ models, local: { contextSize } })
  llms = await Promise.all([withContext(2_048), withContext(2_049)])
})

afterAll(() => Promise.all(llms.map((llm) => llm.close())))

const processId = (llm: Llm): number | undefined => llm.loaded()[0]?.processId

/** Reads a stream to its end. Returns its finish reason or its error code. */
async function read(llm: Llm, prompt: string): Promise<string> {
  const input = { kind: 'text', prompt: [prompt] } as const
  const call = { signal: new AbortController().signal, stream: true }
  try {
    const generation = await llm.generate({ model: 'tiny', input, maxTokens: 40 }, call)
    for await (const event of generation) if (event.type === 'end') return event.finishReason
    return 'nothing'
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error)
  }
}

/** Runs a call with a long answer, one with a long prompt, and a short one. */
const readAll = (llm: Llm): Promise<string[]> =>
  Promise.all(
    ['Write a short story about Ada.', `Say hello. ${'word '.repeat(150)}`, 'Hello'].map((prompt) =>
      read(llm, prompt),
    ),
  )

async function duration(job: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await job()
  return performance.now() - startedAt
}

function heapBytes(): number {
  setFlagsFromString('--expose_gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

const kills = times(200, 8)

test(`after ${kills} kills at random moments, all streams have ended as expected, calls work and nothing leaks`, async () => {
  const ends: string[] = []
  const killed = new Set<number>()

  async function kill(llm: Llm, afterMs: number): Promise<void> {
    const streams = readAll(llm)
    await until(() => processId(llm) !== undefined, 5_000)
    await delay(afterMs)
    const victim = processId(llm) as number
    killed.add(victim)
    process.kill(victim, 'SIGKILL')
    ends.push(...(await streams))
    await until(() => processId(llm) !== victim, 5_000)
  }

  /** Kills a loaded process, and the next one during or soon after its load. Then a call has to succeed. */
  async function killInPairs(llm: Llm, pairs: number, next: () => number): Promise<void> {
    const coldMs = await duration(() => readAll(llm))
    const warmMs = await duration(() => readAll(llm))
    for (let pair = 0; pair < pairs; pair++) {
      await kill(llm, next() * warmMs)
      await kill(llm, next() * coldMs)
      const { text } = await llm.chat('Hello', { model: 'tiny', temperature: 0 })
      expect(text).toBe('Hello! How can I help you?')
    }
  }
  const killAll = (count: number, seed: number): Promise<unknown> =>
    Promise.all(llms.map((llm, index) => killInPairs(llm, count / 4, randomOf(seed + index))))

  await killAll(4, 1)
  const before = {
    heap: heapBytes(),
    descriptors: openDescriptors(),
    listeners: process.listenerCount('exit'),
  }
  await killAll(kills - 4, 3)
  const heap = heapBytes()

  expect(killed.size).toBe(kills)
  expect(ends.filter((end) => !['length', 'stop', 'upstream'].includes(end))).toEqual([])
  expect(ends.filter((end) => end === 'upstream').length).toBeGreaterThan(kills)
  await noOrphan(killed)
  expect(openDescriptors()).toBeLessThanOrEqual(before.descriptors)
  expect(process.listenerCount('exit')).toBe(before.listeners)
  // The heap grows by about 1 MB in the first kills, as code is compiled, and not in later ones.
  expect(heap - before.heap).toBeLessThan(3_000_000)
}, 600_000)
