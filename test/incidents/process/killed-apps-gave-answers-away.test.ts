/**
 * An app was killed during its streams: out of memory, a deployment without grace. What its callers had received was
 * never charged, and for a minute their running calls still counted.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../support/databases.ts'
import {
  type KillableServer,
  type Received,
  readStream,
  startKillableServer,
} from '../../support/killed-server.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const ann = { id: 'ann', limits: { concurrent: 2 }, spendingLimit: { usd: 1, period: 'day' } }

async function start(database: string): Promise<KillableServer> {
  const server = await startKillableServer(database, { callers: [ann], prices, words: 2_000 })
  onTestFinished(() => server.kill())
  return server
}

/** Kills an app during two streams, and starts it again. */
async function killDuringTwoStreams(database: string) {
  const first = await start(database)
  const streams: Promise<Received>[] = []
  for (const _ of [1, 2])
    await new Promise<void>((resolve) => streams.push(readStream(first.url, 2_000, 0, resolve)))
  expect((await readStream(first.url, 1)).refusal).toEqual({ status: 429, retryAfterS: 1 })
  await delay(1_000)
  await first.kill()
  const killedAt = performance.now()
  const received = await Promise.all(streams)
  return { received, killedAt, url: (await start(database)).url }
}

describe.each(databases())('in $name', ({ fresh }) => {
  test('after kill -9 and a restart, `concurrent` is free within 10 s, and `retry-after` says when', async () => {
    const { killedAt, url } = await killDuringTwoStreams(await fresh())

    const waits: number[] = []
    let next = await readStream(url, 3)
    while (next.refusal && performance.now() - killedAt < 12_000) {
      expect(next.refusal.status).toBe(429)
      waits.push(next.refusal.retryAfterS)
      await delay(next.refusal.retryAfterS * 1_000)
      next = await readStream(url, 3)
    }
    const freeAfterMs = performance.now() - killedAt

    expect(next).toMatchObject({ isWhole: true, refusal: undefined })
    // `retry-after` has whole seconds.
    expect(freeAfterMs).toBeLessThan(10_000 + 1_000)
    // One second while it is unknown whether the other process lives. Then the time, and no further refusal.
    expect(waits.slice(0, -1).filter((seconds) => seconds !== 1)).toEqual([])
  }, 60_000)

  test('after kill -9 and a restart, the text that the clients have received is charged', async () => {
    const database = await fresh()
    const { received } = await killDuringTwoStreams(database)
    const llm = await createLlm({ engine: scriptedEngine(''), database, prices })
    onTestFinished(() => llm.close())

    await expect.poll(async () => (await llm.usage.calls()).length, { timeout: 15_000 }).toBe(2)
    const rows = new Map((await llm.usage.calls()).map((row) => [row.id, row]))
    for (const { id, chunks, isWhole } of received) {
      expect(isWhole).toBe(false)
      expect(chunks).toBeGreaterThan(64)
      const row = rows.get(id ?? '')
      expect(row?.status).toBe('killed')
      expect(Math.abs((row?.tokens.output ?? 0) - chunks)).toBeLessThanOrEqual(64)
    }
  }, 60_000)
})
