import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { openLedger } from '../../packages/core/src/usage/ledger.ts'
import { databases } from '../support/databases.ts'
import { type Listening, listen } from '../support/listen.ts'
import { until } from '../support/processes.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const words = 20
/** One token in, and so many words out: the scripted engine counts so. */
const costNanoUsd = 1_000 + words * 2_000
const credit = 10
const caller: Caller = {
  id: 'key_1',
  spendLimit: { nanoUsd: credit * costNanoUsd, per: 'month' },
  key: { id: 'key_1', name: 'Reports' },
}
const inMemory = { name: 'memory', fresh: async () => ':memory:' }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function serve(database: string, delayMs: number): Promise<{ llm: Llm; server: Listening }> {
  const engine = scriptedEngine('word '.repeat(words).trim(), { delayMs })
  const llm = await createLlm({ engine, database, prices, auth: 'host' })
  closing.push(() => llm.close())
  const server = await listen(express().use(llmRouter(llm, { caller: () => caller })))
  closing.push(() => server.close())
  return { llm, server }
}

const ask = (url: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny',
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: words,
      stream: true,
    }),
    ...(signal && { signal }),
  })

/** What the ledger says, by its rows and by its sums. */
async function account(llm: Pick<Llm, 'usage'>) {
  const rows = await llm.usage.calls({ limit: 1_000 })
  const [sums] = await llm.usage.report({ by: 'key' })
  return {
    rows,
    byRows: rows.reduce((sum, { nanoUsd }) => sum + BigInt(nanoUsd), 0n),
    bySums: sums?.nanoUsd ?? 0n,
  }
}

describe.each([inMemory, ...databases()])('with credit for ten calls, in $name', ({ name, fresh }) => {
  test('of a hundred parallel streams ten run, and the ledger has their cost to the nano-dollar', async () => {
    const { llm, server } = await serve(await fresh(), 1)

    const answers = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const response = await ask(server.url)
        return { status: response.status, text: await response.text() }
      }),
    )

    const ran = answers.filter(({ status }) => status === 200)
    expect(ran).toHaveLength(credit)
    expect(ran.every(({ text }) => text.endsWith('data: [DONE]\n\n'))).toBe(true)
    const { rows, byRows, bySums } = await account(llm)
    expect(rows.map(({ status, nanoUsd }) => [status, nanoUsd])).toEqual(
      Array(credit).fill(['ended', costNanoUsd]),
    )
    expect([byRows, bySums]).toEqual([BigInt(credit * costNanoUsd), BigInt(credit * costNanoUsd)])
  })

  test('streams that are left at random are billed for what was said, and what they did not use is spent by others', async () => {
    const { llm, server } = await serve(await fresh(), 2)
    const limit = BigInt(credit * costNanoUsd)

    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 25 }, async (_, index) => {
          const left = new AbortController()
          if (index % 2) setTimeout(() => left.abort(), (index * 7 + round * 13) % 40)
          await ask(server.url, left.signal)
            .then((response) => response.text())
            .catch(() => {})
        }),
      )
    }
    // What was left is settled when the server notices.
    const engine = await settled(llm)

    expect(engine.bySums).toBe(engine.byRows)
    expect(engine.bySums).toBeLessThanOrEqual(limit)
    expect(engine.bySums).toBeGreaterThan(limit - BigInt(costNanoUsd))
    expect(new Set(engine.rows.map(({ id }) => id)).size).toBe(engine.rows.length)
    for (const { tokens, nanoUsd, status } of engine.rows) {
      expect(nanoUsd).toBe(tokens.input * 1_000 + tokens.output * 2_000)
      expect(['ended', 'aborted']).toContain(status)
    }
  })

  // Memory ends with its process.
  const testIfKept = name === 'memory' ? () => {} : test
  testIfKept('an app that is killed in the middle loses no credit, and bills nothing twice', async () => {
    const where = await fresh()
    const app = fork(fileURLToPath(new URL('app.mjs', import.meta.url)), [
      where,
      JSON.stringify({ caller, prices, words }),
    ])
    let said = 0
    app.on('message', () => said++)
    await until(() => said > 3 * words, 20_000)
    const exit = once(app, 'exit')
    app.kill('SIGKILL')
    await exit

    const database = await openDatabase(where)
    closing.push(() => database.close())
    const now = Date.now()
    const open = (at: number) => openLedger(database, { prices, now: () => at })
    const before = await account({ usage: await open(now) })
    expect(before.byRows).toBe(before.bySums)
    expect(before.byRows).toBeLessThanOrEqual(BigInt(credit * costNanoUsd))

    // A minute later all that it had reserved is free again: exactly what was not billed can be spent.
    const later = await open(now + 61_000)
    const left = credit * costNanoUsd - Number(before.byRows)
    const most = { inputTokens: 0, outputTokens: left / 2_000 }
    const call = { id: 'last', caller, model: 'tiny' }
    await expect(
      later.reserve({ ...call, id: 'more' }, { ...most, outputTokens: most.outputTokens + 1 }),
    ).rejects.toThrow('Reports')
    const whole = { ...most, outputTokens: Math.floor(most.outputTokens) }
    expect((await later.reserve(call, whole)).maxOutputTokens).toBe(whole.outputTokens)
  })
})

/** Until nothing is reserved any more: then a call that costs all that is left gets in. */
async function settled(llm: Llm) {
  let last = await account(llm)
  for (let same = 0; same < 5; ) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    const next = await account(llm)
    same = next.rows.length === last.rows.length ? same + 1 : 0
    last = next
  }
  return last
}
