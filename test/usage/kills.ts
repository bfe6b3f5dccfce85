/**
 * kill -9 of apps and of their model process at random moments, while clients read streams. The ledger then contains
 * what the clients have received: exactly for each complete answer, within 64 tokens for each other answer.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { withTimeout } from '../../packages/core/src/util/with-timeout.ts'
import { allCalls, type CallRow } from '../support/all-calls.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import {
  type KillableServer,
  type Received,
  readStream,
  startKillableServer,
} from '../support/killed-server.ts'
import { randomOf } from '../support/random.ts'
import { times } from '../support/scale.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Text for the report of `npm run test:long`. */
    report?: string
  }
}

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const callers = [
  { id: 'ann', limits: { concurrent: 1_000 }, spendingLimit: { usd: 1_000, period: 'month' } },
  { id: 'bob' },
]
/** Apps with one database. While one of them is dead, the others may charge its calls. */
const apps = 3
const clientsPerApp = 4
const maxUnnotedTokens = 64

const engines = [
  // Hundreds of tokens per second and stream.
  {
    engine: 'the scripted engine',
    settings: { words: 400 },
    maxTokens: 400,
    kills: times(390, 6),
    longestMs: 1_500,
  },
  {
    engine: 'the real engine',
    settings: { models: emptyFolder() },
    ...{ maxTokens: 120, kills: times(110, 3), longestMs: 3_000 },
  },
]
type Engine = (typeof engines)[number]

/** Registers the tests of one database. */
export function testKills(databaseName: string): void {
  const database = databases().find(({ name }) => name === databaseName)
  describe.runIf(database)(`in ${databaseName}`, () => {
    test.for(engines)(
      'with $engine, $kills kills lose no acknowledged row, leave no reservation, and charge what was received',
      { timeout: 1_800_000 },
      async (engine, { task }) => {
        const location = (await database?.fresh()) as string
        const { answers, counts } = await killApps(location, engine)
        answers.push(await readAfterKills(location, engine))
        const llm = await createLlm({ engine: scriptedEngine(''), database: location, prices })
        onTestFinished(() => llm.close())
        await expectNoReservations(location)
        const rows = await allCalls(llm)
        const killed = rows.filter(({ status }) => status === 'killed')
        // In a sample, the real engine may have written too little before each kill.
        if ('words' in engine.settings)
          expect(killed.some(({ tokens }) => tokens.output > maxUnnotedTokens)).toBe(true)
        await expectSums(llm, location, rows)
        task.meta.report = `${counts}; ${expectCharged(rows, answers)}; ${killed.length} rows of killed calls.`
      },
    )
  })
}

/** Returns the answers that the clients have received. */
async function killApps(location: string, { settings, maxTokens, kills, longestMs }: Engine) {
  const answers: Received[] = []
  let killedApps = 0
  let killedModels = 0
  const runApp = async (random: () => number): Promise<void> => {
    const server: KillableServer = await startKillableServer(location, { ...settings, callers, prices })
    onTestFinished(() => server.kill())
    let isUp = true
    let onText: () => void = () => {}
    const read = async (): Promise<void> => {
      while (isUp) {
        const [tokens, caller] = [1 + Math.floor(random() * maxTokens), Math.floor(random() * callers.length)]
        answers.push(await readStream(server.url, tokens, caller, () => onText()))
      }
    }
    /** Mostly during a stream, sometimes during the start or a load. */
    const randomMoment = async (): Promise<void> => {
      const text = new Promise<void>((resolve) => {
        onText = resolve
      })
      if (random() < 0.75) await withTimeout(text, 5_000)
      await delay(random() * longestMs)
    }
    const reading = Array.from({ length: clientsPerApp }, read)
    // The app survives some kills of its model process before it is killed itself.
    const modelKills = 'models' in settings ? Math.floor(random() * 3) : 0
    for (let index = 0; index < modelKills; index++) {
      await randomMoment()
      void server.killModelProcess()
      killedModels++
    }
    await randomMoment()
    isUp = false
    await server.kill()
    killedApps++
    await Promise.all(reading)
  }
  await Promise.all(
    Array.from({ length: apps }, async (_, index) => {
      const random = randomOf(index)
      while (killedApps + killedModels < kills) await runApp(random)
    }),
  )
  return { answers, counts: `${killedApps} kills of an app, ${killedModels} of a model process` }
}

/** An app that starts after the kills serves a whole answer. */
async function readAfterKills(location: string, { settings }: Engine): Promise<Received> {
  const server = await startKillableServer(location, { ...settings, callers, prices })
  onTestFinished(() => server.kill())
  const answer = await readStream(server.url, 3, 0, () => {})
  expect(answer.isWhole).toBe(true)
  await server.kill()
  return answer
}

/** Waits until the leases of the killed apps have expired. */
async function expectNoReservations(location: string): Promise<void> {
  const store = await openDatabase(location)
  onTestFinished(() => store.close())
  const left = async (): Promise<unknown> => {
    const [row] = await store.query(
      `SELECT (SELECT count(*) FROM modelmount_funds) AS reservations,
         (SELECT count(*) FROM modelmount_limit_leases WHERE expires_at > ${store.clock}) AS running`,
    )
    return row
  }
  await expect.poll(left, { timeout: 20_000 }).toEqual({ reservations: 0, running: 0 })
}

/** Returns a summary for the report. */
function expectCharged(rows: readonly CallRow[], answers: readonly Received[]): string {
  const byId = new Map(rows.map((row) => [row.id, row]))
  expect(byId.size).toBe(rows.length)
  let [complete, received, most, least] = [0, 0, 0, 0]
  for (const { id, chunks, reportedTokens, isWhole } of answers) {
    if (id === undefined) continue
    const row = byId.get(id)
    if (isWhole) expect(row).toMatchObject({ status: 'ended', tokens: { output: reportedTokens } })
    // Each chunk of the two models is one token.
    const tokens = isWhole ? (reportedTokens ?? 0) : chunks
    const difference = (row?.tokens.output ?? 0) - tokens
    expect(Math.abs(difference), JSON.stringify({ id, chunks, row })).toBeLessThanOrEqual(maxUnnotedTokens)
    received += tokens
    complete += isWhole ? 1 : 0
    most = Math.max(most, difference)
    least = Math.min(least, difference)
  }
  // Includes answers whose id the client has not received.
  const cut = new Set([...byId.keys(), ...answers.flatMap(({ id }) => id ?? [])]).size - complete
  const charged = rows.reduce((sum, { tokens }) => sum + tokens.output, 0)
  expect(Math.abs(charged - received)).toBeLessThanOrEqual(cut * maxUnnotedTokens)
  expect(complete).toBeGreaterThan(0)
  expect(cut).toBeGreaterThan(0)
  return (
    `${complete} complete answers and ${cut} others; ${received} tokens received, ${charged} charged; ` +
    `at most ${-least} tokens of an answer too few, and ${most} too many`
  )
}

/** The sums per day and the spending are those of the rows. */
async function expectSums(llm: Llm, location: string, rows: readonly CallRow[]): Promise<void> {
  const store = await openDatabase(location)
  onTestFinished(() => store.close())
  for (const { id } of callers) {
    const own = rows.filter(({ caller }) => caller === id)
    const nanoUsd = own.reduce((sum, row) => sum + BigInt(row.nanoUsd), 0n)
    const [sum] = (await llm.usage.report({ by: 'key' })).filter(({ group }) => group === id)
    expect(sum).toMatchObject({ calls: own.length, nanoUsd })
    const [account] = await store.query<{ spent: number }>(
      'SELECT lifetime_spent AS spent FROM modelmount_spending WHERE caller = ?',
      [id],
    )
    expect(BigInt(account?.spent ?? -1)).toBe(nanoUsd)
  }
}
