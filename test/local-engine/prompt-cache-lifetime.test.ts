/** How long what is read up to a breakpoint is kept: the model is the real one, the clock is not. */

import type { CacheLifetime } from '@modelmount/core/engine'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Clocked, openClocked } from '../support/clocked.ts'
import { cached, type Marked, message, notes } from '../support/marked.ts'

let model: Clocked

beforeAll(async () => {
  model = await openClocked({ contextSize: 1024, parallel: 2 })
})
afterAll(() => model.close())
beforeEach(() => {
  model.restart()
  model.stepMs = 0
})

const minute = 60_000
const wait = (minutes: number): void => {
  model.now += minutes * minute
}

/** Tells, too, whether what is said of evaluated tokens is true. */
async function ask(
  lifetimes: readonly CacheLifetime[],
  question = 'Hello',
  tenant?: string,
): Promise<Marked> {
  const marks = lifetimes.map((lifetime, at) =>
    message(at === 0 ? 'system' : 'user', notes(15, 100 * at), lifetime),
  )
  model.evaluated = 0
  const messages = [...marks, message('user', question)]
  const marked = await model.ask({ input: { kind: 'chat', messages }, maxTokens: 1 }, tenant)
  const { inputTokens, reusedTokens } = marked.usage
  expect(model.evaluated).toBe(inputTokens - reusedTokens)
  return marked
}
const isRead = async (...asked: Parameters<typeof ask>): Promise<boolean> =>
  cached(await ask(...asked))[0] > 0

test('after five minutes in which nobody used it, it is written again', async () => {
  const first = await ask(['5m'])
  wait(5)
  const inTime = await ask(['5m'])
  wait(5.01)
  const late = await ask(['5m'])

  expect(cached(first)[1]).toBeGreaterThan(150)
  expect(cached(inTime)).toEqual([cached(first)[1], 0, 0])
  expect(cached(late)).toEqual(cached(first))
})

test('each read begins them anew', async () => {
  await ask(['5m'])
  const reads: boolean[] = []
  for (const minutes of [4, 4, 4.9, 4, 5.1]) {
    wait(minutes)
    reads.push(await isRead(['5m'], `What is box ${minutes}?`))
  }

  expect(reads).toEqual([true, true, true, true, false])
})

test('what is asked to be kept for an hour is', async () => {
  await ask(['1h'])
  wait(59)
  const inTime = await isRead(['1h'])
  wait(60)
  const again = await isRead(['1h'])
  wait(60.1)

  expect([inTime, again, await isRead(['1h'])]).toEqual([true, true, false])
})

test('when the five minutes of the second are over, the first is read for an hour', async () => {
  const first = await ask(['1h', '5m'])
  wait(6)
  const later = await ask(['1h', '5m'])

  const [, five, hour] = cached(first)
  expect(five).toBeGreaterThan(150)
  expect(hour).toBeGreaterThan(150)
  expect(cached(later)).toEqual([hour, five, 0])
})

test('who asks for an hour of what is kept for five minutes gets an hour', async () => {
  await ask(['5m'])
  wait(4)
  const asked = await isRead(['1h'])
  wait(50)

  expect([asked, await isRead(['1h'])]).toEqual([true, true])
})

test('who asks for five minutes of what is kept for an hour takes nothing of that', async () => {
  await ask(['1h'])
  wait(10)
  const asked = await isRead(['5m'])
  wait(50)

  expect([asked, await isRead(['5m'])]).toEqual([true, true])
})

test('time begins when it is read, however long that takes', async () => {
  /** When the call came. */
  const readSlowly = async (): Promise<number> => {
    model.stepMs = minute
    const comesAt = model.now
    await ask(['5m'])
    model.stepMs = 0
    expect(model.now - comesAt).toBeGreaterThanOrEqual(2 * minute)
    return comesAt
  }
  model.now = (await readSlowly()) + 5.1 * minute
  expect(await isRead(['5m'])).toBe(true)
  model.restart()

  await readSlowly()
  wait(5.1)

  expect(await isRead(['5m'])).toBe(false)
})

test('what has ended takes no room, as soon as there is something new', async () => {
  await ask(['5m'], 'Hello', 'ann')
  const sizeBytes = model.bytes()
  await ask(['5m'], 'Hello', 'ben')
  const both = model.bytes()
  wait(5.1)
  await ask(['5m'], 'Hello', 'eve')

  expect(both).toBe(2 * sizeBytes)
  expect(model.bytes()).toBe(sizeBytes)
})
