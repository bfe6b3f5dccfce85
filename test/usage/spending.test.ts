import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { openLedger } from '../../packages/core/src/accounts/usage/ledger.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { promptCanary } from '../support/leaks.ts'
import { type Listening, listen } from '../support/listen.ts'
import { until } from '../support/processes.ts'
import { runLog } from '../support/run-log.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const words = 20
/** Cost of one complete answer: the scripted engine counts one input token, and one output token per word. */
const costNanoUsd = 1_000 + words * 2_000
/** Number of complete answers that the spending limit covers. */
const answersCovered = 10
const caller: Caller = {
  id: 'key_1',
  spendingLimit: { usd: (answersCovered * costNanoUsd) / 1e9, period: 'month' },
  key: { id: 'key_1', name: 'Reports' },
}
const inMemory = { name: 'memory', fresh: async () => ':memory:' }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Served {
  readonly llm: Llm
  readonly server: Listening
  /** Number of generations that the engine has started. */
  readonly started: () => number
}

async function serve(database: string, delayMs: number): Promise<Served> {
  const scripted = scriptedEngine('word '.repeat(words).trim(), { delayMs })
  let started = 0
  const generate: typeof scripted.generate = (...args) => {
    started++
    return scripted.generate(...args)
  }
  const engine = { ...scripted, generate }
  const llm = await createLlm({ engine, database, prices, auth: 'host', logger: runLog })
  closing.push(() => llm.close())
  const server = await listen(express().use(llmRouter(llm, { authenticate: () => caller })))
  closing.push(() => server.close())
  return { llm, server, started: () => started }
}

const ask = (url: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny',
      messages: [{ role: 'user', content: promptCanary }],
      max_tokens: words,
      stream: true,
    }),
    ...(signal && { signal }),
  })

/** The rows of the ledger, their total cost, and the total cost in the report. */
async function account(llm: Pick<Llm, 'usage'>) {
  const rows = await llm.usage.calls({ limit: 1_000 })
  const [sums] = await llm.usage.report({ by: 'key' })
  return {
    rows,
    byRows: rows.reduce((sum, { nanoUsd }) => sum + BigInt(nanoUsd), 0n),
    bySums: sums?.nanoUsd ?? 0n,
  }
}

/**
 * What the caller has spent this month in nano-dollars, and the number of its reservations, from the
 * database.
 */
async function accountIn(where: string): Promise<{ readonly spent: bigint; readonly reserved: number }> {
  const database = await openDatabase(where)
  try {
    const [row] = await database.query<{ spent: number; reserved: number }>(
      `SELECT (SELECT month_spent FROM modelmount_spending WHERE caller = ?) AS spent,
         (SELECT count(*) FROM modelmount_funds WHERE caller = ?) AS reserved`,
      [caller.id, caller.id],
    )
    return { spent: BigInt(row?.spent ?? 0), reserved: row?.reserved ?? 0 }
  } finally {
    await database.close()
  }
}

/**
 * Expects that exactly this amount remains of the spending limit. A call that costs all of it is admitted,
 * and a call of one more token is rejected. A reservation that was not released would fail this check.
 */
async function expectRemaining(llm: Llm, nanoUsd: number): Promise<void> {
  const most = Math.floor((nanoUsd - 1_000) / 2_000)
  const reserve = async (maxTokens: number): Promise<void> => {
    const input = { kind: 'text', prompt: ['Hi'] } as const
    const controller = new AbortController()
    const signal = controller.signal
    for await (const _ of await llm.generate({ model: 'tiny', input, maxTokens }, { signal, caller }))
      controller.abort()
  }
  await expect(reserve(most + 1)).rejects.toMatchObject({ code: 'quota' })
  if (most > 0) await reserve(most)
}

async function readPieces(
  start: () => Promise<Response>,
  most: number,
  controller: AbortController,
): Promise<void> {
  if (most === 0) setImmediate(() => controller.abort())
  try {
    let pieces = 0
    for await (const _ of (await start()).body as AsyncIterable<Uint8Array>)
      if (++pieces >= most) controller.abort()
  } catch (cause) {
    if (!controller.signal.aborted) throw cause
  }
}

/** Starts two apps with one database, or one app if the database is in memory. */
const serveSome = async (name: string, where: string, delayMs: number): Promise<readonly Served[]> =>
  Promise.all(Array.from({ length: name === 'memory' ? 1 : 2 }, () => serve(where, delayMs)))

const oneOf = <Item>(items: readonly Item[], index: number): Item => items[index % items.length] as Item

describe.each([inMemory, ...databases()])('a spending limit of ten answers, in $name', ({ name, fresh }) => {
  const isPersistent = name !== 'memory'

  test('admits ten of a hundred parallel streams across apps, and records their exact cost', async () => {
    const where = await fresh()
    const apps = await serveSome(name, where, 1)
    const [{ llm }] = apps as [Served]

    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const response = await ask(oneOf(apps, index).server.url)
        return { status: response.status, text: await response.text() }
      }),
    )

    const ran = answers.filter(({ status }) => status === 200)
    expect(ran).toHaveLength(answersCovered)
    expect(ran.every(({ text }) => text.endsWith('data: [DONE]\n\n'))).toBe(true)
    const rejected = answers.filter(({ status }) => status !== 200)
    // While streams run, they may still release credit. Then a rejected client may retry
    // (rate_limit_exceeded).
    for (const { status, text } of rejected)
      expect(['429 rate_limit_exceeded', '429 insufficient_quota']).toContain(
        `${status} ${JSON.parse(text).error.code}`,
      )
    expect(apps.reduce((sum, { started }) => sum + started(), 0)).toBe(answersCovered)
    const { rows, byRows, bySums } = await account(llm)
    expect(rows.map(({ status, nanoUsd }) => [status, nanoUsd])).toEqual(
      Array(answersCovered).fill(['ended', costNanoUsd]),
    )
    const all = BigInt(answersCovered * costNanoUsd)
    expect([byRows, bySums]).toEqual([all, all])
    if (isPersistent) expect(await accountIn(where)).toEqual({ spent: all, reserved: 0 })
    await expectRemaining(llm, 0)
  })

  test('charges aborted streams for their output, and releases the rest of their reservations', async () => {
    const where = await fresh()
    const apps = await serveSome(name, where, 5)
    const [{ llm }] = apps as [Served]
    const limit = BigInt(answersCovered * costNanoUsd)

    for (let round = 0; round < 8; round++) {
      await Promise.all(
        Array.from({ length: 25 }, async (_, index) => {
          const controller = new AbortController()
          // Half of the streams of each app are aborted, before their first chunk or after up to 11 chunks.
          const isAborted = index % 4 < 2
          const most = isAborted ? (index * 7 + round * 13) % 12 : Number.POSITIVE_INFINITY
          await readPieces(() => ask(oneOf(apps, index).server.url, controller.signal), most, controller)
        }),
      )
    }
    // Aborted streams are settled as soon as the server notices the disconnect.
    const { rows, byRows, bySums } = await settled(llm)

    expect(bySums).toBe(byRows)
    expect(bySums).toBeLessThanOrEqual(limit)
    expect(bySums).toBeGreaterThan(limit - BigInt(costNanoUsd))
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
    expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['ended', 'aborted']))
    for (const { tokens, nanoUsd, status } of rows) {
      expect(nanoUsd).toBe(tokens.input * 1_000 + tokens.output * 2_000)
      expect(tokens.output).toBeLessThanOrEqual(words)
      if (status === 'ended') expect(tokens.output).toBe(words)
    }
    if (isPersistent) expect(await accountIn(where)).toEqual({ spent: bySums, reserved: 0 })
    await expectRemaining(llm, Number(limit - bySums))
  })

  // A database in memory does not survive its process.
  if (!isPersistent) return

  test.each([1, 4, 7])(
    'loses no credit and charges no answer twice when an app is killed after %i answers',
    async (answers: number) => {
      const where = await fresh()
      const app = fork(fileURLToPath(new URL('app.mjs', import.meta.url)), [
        where,
        JSON.stringify({ caller, prices, words }),
      ])
      const ended = new Set<string>()
      app.on('message', (id: string) => ended.add(id))
      await until(() => ended.size >= answers, 20_000)
      const exit = once(app, 'exit')
      app.kill('SIGKILL')
      await exit

      const database = await openDatabase(where)
      closing.push(() => database.close())
      const now = Date.now()
      const open = (at: number) => openLedger(database, { prices, now: () => at })
      const { rows, byRows, bySums } = await account({ usage: await open(now) })
      expect(bySums).toBe(byRows)
      expect(byRows).toBeLessThanOrEqual(BigInt(answersCovered * costNanoUsd))
      // Each answer whose end was reported is in the ledger once. The running answers had reservations.
      const ids = rows.map(({ id }) => id)
      expect(ids).toEqual(expect.arrayContaining([...ended]))
      expect(new Set(ids).size).toBe(ids.length)
      const { spent, reserved } = await accountIn(where)
      expect(spent).toBe(byRows)
      expect(reserved).toBeGreaterThan(0)

      // Later, the reservations of the killed app have expired, and what it had noted is charged. Exactly the
      // amount not charged remains.
      const later = await open(now + 61_000)
      await later.chargeKilledCalls()
      const charged = await account({ usage: later })
      expect(charged.bySums).toBe(charged.byRows)
      const remainingTokens = (answersCovered * costNanoUsd - Number(charged.byRows)) / 2_000
      const call = { caller, model: 'tiny' }
      const most = { inputTokens: 0, outputTokens: Math.floor(remainingTokens) }
      await expect(
        later.reserve({ ...call, id: 'more' }, { ...most, outputTokens: most.outputTokens + 1 }),
      ).rejects.toThrow('Reports')
      expect((await later.reserve({ ...call, id: 'last' }, most)).maxOutputTokens).toBe(most.outputTokens)
    },
  )

  test('charges each complete answer once when a server is killed during streams and restarted', async () => {
    const where = await fresh()
    const rich: Caller = { ...caller, spendingLimit: { usd: (1_000 * costNanoUsd) / 1e9, period: 'month' } }
    const start = async () => {
      const path = fileURLToPath(new URL('server.mjs', import.meta.url))
      const server = fork(path, [where, JSON.stringify({ callers: [rich], prices, words })])
      closing.push(async () => server.kill('SIGKILL'))
      const [url] = (await once(server, 'message')) as [string]
      return { server, url }
    }
    const seen: Seen[] = []
    /** Starts streams. The client aborts every second one after 1 to 15 chunks. */
    const stream = (url: string, count: number) =>
      Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const one: Seen = { id: undefined, pieces: 0, isWhole: false }
          seen.push(one)
          await watch(url, one, index % 2 ? 1 + ((index * 7) % 15) : Number.POSITIVE_INFINITY)
        }),
      )

    const first = await start()
    const cut = Promise.all([stream(first.url, 6), stream(first.url, 6).then(() => stream(first.url, 12))])
    await until(() => seen.filter(({ isWhole }) => isWhole).length >= 5, 20_000)
    const exit = once(first.server, 'exit')
    first.server.kill('SIGKILL')
    await Promise.all([exit, cut])
    const killed = new Set(seen)
    const second = await start()
    await stream(second.url, 12)

    const database = await openDatabase(where)
    closing.push(() => database.close())
    const ledger = await openLedger(database, { prices })
    const idsOf = (seen: readonly Seen[]) => seen.flatMap(({ id }) => (id === undefined ? [] : [id]))
    const after = seen.filter((one) => !killed.has(one))
    const { rows, byRows, bySums } = await settled({ usage: ledger })
    const byId = new Map(rows.map((row) => [row.id, row]))

    expect(byId.size).toBe(rows.length)
    expect(bySums).toBe(byRows)
    expect((await accountIn(where)).spent).toBe(byRows)
    // Each complete answer is charged completely. A charged partial answer covers at least the received
    // chunks.
    for (const { id, pieces, isWhole } of seen) {
      const row = byId.get(id ?? '')
      if (isWhole) expect(row).toMatchObject({ status: 'ended', nanoUsd: costNanoUsd })
      else if (row) expect(row.tokens.output).toBeGreaterThanOrEqual(pieces)
    }
    expect([...byId.keys()]).toEqual(expect.arrayContaining(idsOf(after)))
    expect(seen.some(({ isWhole }) => !isWhole)).toBe(true)
    expect(rows.length).toBeLessThanOrEqual(seen.length)
  })
})

/** The part of a stream that a client has received. */
interface Seen {
  id: string | undefined
  pieces: number
  isWhole: boolean
}

async function watch(url: string, seen: Seen, most: number): Promise<void> {
  const controller = new AbortController()
  let read = ''
  try {
    for await (const chunk of (await ask(url, controller.signal)).body as AsyncIterable<Uint8Array>) {
      read += Buffer.from(chunk).toString()
      seen.id ??= /"id":"chatcmpl-([^"]+)"/.exec(read)?.[1]
      seen.pieces = read.match(/"content":" ?word"/g)?.length ?? 0
      seen.isWhole = read.endsWith('data: [DONE]\n\n')
      if (seen.pieces >= most) return controller.abort()
    }
  } catch {
    // The server was killed during the stream or before it.
  }
}

/** Waits until the ledger has had no new row for about 100 ms, and returns its state. */
async function settled(llm: Pick<Llm, 'usage'>) {
  let last = await account(llm)
  for (let same = 0; same < 5; ) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    const next = await account(llm)
    same = next.rows.length === last.rows.length ? same + 1 : 0
    last = next
  }
  return last
}
