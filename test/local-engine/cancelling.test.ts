/** An aborted call stops in every phase, and its slot goes to the next call. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { until } from '../support/processes.ts'

const folder = emptyFolder()
/** One app with one slot, and one with four slots. */
let one: Llm
let four: Llm

beforeAll(async () => {
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  one = await createLlm({ models: folder, local: { parallel: 1 } })
  four = await createLlm({ models: folder, local: { parallel: 4 } })
  await one.load('noise')
  await four.load('noise')
})

afterAll(async () => {
  await one.close()
  await four.close()
})

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

interface Call {
  readonly events: GenerateEvent[]
  readonly has: (type: GenerateEvent['type']) => boolean
  /** Resolves when the call ends or fails. */
  readonly ended: Promise<void>
  leave(): void
}

/** Starts a call at once. `text` is the whole prompt, without a template. */
function ask(llm: Llm, text: string, maxTokens: number, tenant?: string): Call {
  const events: GenerateEvent[] = []
  const leaving = new AbortController()
  const input = { kind: 'text', prompt: [text], template: false } as const
  // A new caller each time, so that no prompt is cached.
  const caller = { id: `caller ${Math.random()}`, ...(tenant && { tenant }) }
  const read = async (): Promise<void> => {
    const request = { model: 'noise', input, maxTokens }
    for await (const event of await llm.generate(request, { signal: leaving.signal, caller }))
      events.push(event)
  }
  return {
    events,
    has: (type) => events.some((event) => event.type === type),
    ended: read().catch(() => {}),
    leave: () => leaving.abort(),
  }
}

const long = 'word '.repeat(3_000)
const chunks = 3_000 / 64

/** Time that this machine needs for one prompt chunk, in ms. */
async function chunkMs(): Promise<number> {
  const call = ask(one, long, 1)
  await call.ended
  const end = call.events.at(-1)
  if (end?.type !== 'end') throw new Error('The answer did not end.')
  return end.timings.promptMs / chunks
}

/** Waits until the next call has a slot. Returns the time, in ms. */
async function untilTaken(next: Call): Promise<number> {
  const startedAt = performance.now()
  await until(() => next.has('start'), 10_000)
  return performance.now() - startedAt
}

test('an abort during prefill frees the slot within about three chunks', async () => {
  const chunk = await chunkMs()
  const waits: number[] = []
  for (let round = 0; round < 5; round++) {
    const call = ask(one, long, 5)
    await until(() => call.has('start'), 10_000)
    const next = ask(one, 'Hello', 1)

    call.leave()
    waits.push(await untilTaken(next))
    await next.ended

    expect(call.has('text')).toBe(false)
  }

  expect(median(waits)).toBeLessThan(3 * chunk + 30)
})

test('an abort during generation frees the slot within 25 tokens of another stream', async () => {
  const counts: number[] = []
  for (let round = 0; round < 5; round++) {
    const calls = Array.from({ length: 4 }, () => ask(four, 'Hello', 3_000))
    await until(() => calls.every(({ has }) => has('text')), 10_000)
    const next = ask(four, 'Hello', 1)
    const [leaving, listening] = calls as [Call, Call]

    leaving.leave()
    const before = listening.events.length
    await until(() => next.has('start'), 10_000)
    counts.push(listening.events.length - before)

    for (const call of calls) call.leave()
    await Promise.all([...calls, next].map(({ ended }) => ended))
  }

  expect(median(counts)).toBeLessThan(25)
})

test('a call aborted while all slots are in use never starts', async () => {
  const chunk = await chunkMs()
  // A call of another tenant would take the slot.
  const tenant = 'one of several callers'
  const first = ask(one, 'Hello', 400, tenant)
  await until(() => first.has('text'), 10_000)
  const leaving = ask(one, long, 5, tenant)
  const next = ask(one, 'Hello', 5, tenant)
  // After 60 more events, both calls wait for the slot.
  const eventCount = first.events.length
  await until(() => first.events.length > eventCount + 60, 10_000)

  leaving.leave()
  await leaving.ended
  const wasRunning = !first.has('end')
  await first.ended
  const waitedMs = await untilTaken(next)
  await next.ended

  expect(wasRunning).toBe(true)
  expect(waitedMs).toBeLessThan(3 * chunk + 30)
  expect(leaving.events).toEqual([])
  expect(next.events.at(-1)?.type).toBe('end')
})

test('a call aborted while its model loads ends before the load', async () => {
  await one.unload('noise')
  const leaving = ask(one, 'Hello', 5)
  await until(() => one.loaded().length === 1, 5_000)

  leaving.leave()
  await leaving.ended
  const [{ state } = { state: 'none' }] = one.loaded()
  const next = ask(one, 'Hello', 5)
  await next.ended

  expect(state).toBe('loading')
  expect(next.events.at(-1)?.type).toBe('end')
})

test('all four slots are free again after 50 aborts at different moments', async () => {
  for (let round = 0; round < 10; round++) {
    const calls = Array.from({ length: 5 }, (_, index) => ask(four, index % 2 ? long : 'Hello', 3_000))
    // One call waits. The others evaluate or generate, for longer in each round.
    await until(() => calls.reduce((sum, { events }) => sum + events.length, 0) >= 4 + round * 5, 10_000)
    for (const call of calls) call.leave()
    await Promise.all(calls.map(({ ended }) => ended))
  }

  const calls = Array.from({ length: 4 }, () => ask(four, 'Hello', 100))
  await until(() => calls.every(({ has }) => has('text')), 10_000)

  expect(calls.some(({ has }) => has('end'))).toBe(false)
  await Promise.all(calls.map(({ ended }) => ended))
  expect(calls.every(({ has }) => has('end'))).toBe(true)
})
