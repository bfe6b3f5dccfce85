/**
 * PostgreSQL is away for longer than leases last, while calls with limits, spending limits and the ledger run in two
 * apps. Running answers go on, new calls get 503, and in the end everything is charged and counted once.
 */
import { createLlm, type Llm, type LlmOptions, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { hasPostgres, startPostgres } from '../support/postgres.ts'
import { runLog } from '../support/run-log.ts'
import { chats, post } from '../support/served.ts'
import { silentProxy } from '../support/silent-proxy.ts'

/** Words before the gate of an answer, and in all. After 64 without a note, a reader waits for the database. */
const [wordsBefore, words] = [10, 100]
const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const costOf = (outputWords: number): number => 1_000 + outputWords * 2_000
/** A lease lasts 9 s. */
const awayMs = 10_000
const tokensPerDay = 86_400
const streams = 3

/** An engine whose answers pause after some words, until the gate opens that the request names in its text. */
function gatedEngine(): Engine & { open(name: string): void } {
  const base = scriptedEngine('word '.repeat(words).trim())
  const gates = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>()
  const gateOf = (name: string) => {
    let open = (): void => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    const gate = gates.get(name) ?? { opened, open }
    gates.set(name, gate)
    return gate
  }
  return {
    ...base,
    async *generate(request, call) {
      const name = /gate-\w+/.exec(JSON.stringify(request.input))?.[0]
      const aborted = new Promise<void>((resolve) => {
        call.signal.addEventListener('abort', () => resolve(), { once: true })
      })
      let seen = 0
      for await (const event of base.generate(request, call)) {
        if (name && event.type === 'text' && seen++ === wordsBefore)
          await Promise.race([gateOf(name).opened, aborted])
        if (call.signal.aborted) return
        yield event
      }
    },
    open: (name) => gateOf(name).open(),
  }
}

/** Reads a stream of `/v1/chat/completions`. */
function follow(response: Response) {
  let received = 0
  const done = (async () => {
    let text = ''
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      received = text.match(/"content":"[^"]*word/g)?.length ?? 0
    }
    return text
  })()
  return { received: () => received, done }
}

describe.runIf(hasPostgres)('PostgreSQL that is away', () => {
  const away = {
    'a server that is stopped': async () => {
      const server = await startPostgres()
      onTestFinished(() => server.stop())
      return { url: server.url, leave: () => server.halt(), back: () => server.resume() }
    },
    'a network that loses everything': async () => {
      const server = await startPostgres()
      const proxy = await silentProxy(server.url)
      onTestFinished(async () => {
        await proxy.close()
        await server.stop()
      })
      return { url: proxy.url, leave: async () => proxy.silence(), back: async () => proxy.resume() }
    },
  }

  async function open(database: string, engine: Engine): Promise<{ llm: Llm; url: string }> {
    const options: LlmOptions = { engine, models: [], auth: 'keys', database, prices, logger: runLog }
    const llm = await createLlm(options)
    const server = await listen(toNodeHandler(routesFor(), llm))
    onTestFinished(async () => {
      await server.close()
      await llm.close()
    })
    return { llm, url: server.url }
  }

  test.each(Object.entries(away))(
    '%s: running answers go on, new calls get 503, and all is charged and counted once',
    async (_, start) => {
      const { url: database, leave, back } = await start()
      const engine = gatedEngine()
      const [app, other] = [await open(database, engine), await open(database, engine)]
      const { key, secret } = await app.llm.keys.create({
        name: 'any',
        limits: { requestsPerMinute: 1_000_000, tokensPerDay, concurrent: 2 * streams },
        spendingLimit: { usd: 1, period: 'month' },
      })
      const headers = { 'x-api-key': secret }
      const stream = (name: string, to = app, signal?: AbortSignal) =>
        fetch(`${to.url}/v1/chat/completions`, {
          ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/json' } },
          body: JSON.stringify({
            ...{ model: 'tiny', stream: true, max_tokens: 200 },
            messages: [{ role: 'user', content: name }],
          }),
          ...(signal && { signal }),
        })
      const leaving = new AbortController()
      const during = [follow(await stream('gate-during')), follow(await stream('gate-during', other))]
      const after = [follow(await stream('gate-after')), follow(await stream('gate-after', other))]
      const left = follow(await stream('gate-never', app, leaving.signal))
      left.done.catch(() => {})
      const all = [...during, ...after, left]
      await expect.poll(() => all.map(({ received }) => received())).toEqual(all.map(() => wordsBefore))

      const leftAt = performance.now()
      await leave()
      engine.open('gate-during')
      leaving.abort()

      // A call without limits and key needs no database before its end, either.
      const unlimited = app.llm.chat('Hi', { model: 'tiny', caller: { id: 'host' } })
      // Answers that run do not need the database: their ends wait for it for some seconds at most.
      const ends = Promise.all(during.map(({ done }) => done))
      const refused = chats.map(async ({ path, body }) => {
        const response = await post(app.url + path, body, headers)
        return [path, response.status, response.headers.get('retry-after'), await response.text()]
      })
      for (const text of await ends) expect(text).toMatch(/\[DONE\]\s*$/)
      const message = expect.stringContaining('The database is unavailable. Try again in 1 s.')
      expect(await Promise.all(refused)).toEqual(chats.map(({ path }) => [path, 503, '1', message]))
      expect((await unlimited).text).toMatch(/^word /)
      expect(await app.llm.checkHealth()).toMatchObject({
        status: 'unavailable',
        checks: { database: { status: 'unavailable' } },
      })
      await expect
        .poll(() => performance.now() - leftAt, { interval: 100, timeout: awayMs + 5_000 })
        .toBeGreaterThan(awayMs)
      await back()

      const [chat] = chats
      const call = () => post(app.url + (chat?.path ?? ''), chat?.body, headers)
      await expect.poll(async () => (await call()).status, { interval: 500, timeout: 20_000 }).toBe(200)
      // The leases of the running calls have expired. They count and hold their credit again.
      engine.open('gate-after')
      for (const text of await Promise.all(after.map(({ done }) => done)))
        expect(text).toMatch(/\[DONE\]\s*$/)

      // Failed writes are repeated every 2 s, and settlements of limits every 5 s.
      const rows = async () =>
        (await app.llm.usage.calls({ caller: key.id, limit: 100 })).filter(
          ({ status }) => status !== 'failed',
        )
      const statuses = async () => (await rows()).map(({ status }) => status).sort()
      await expect
        .poll(statuses, { interval: 200, timeout: 20_000 })
        .toEqual(['aborted', 'ended', 'ended', 'ended', 'ended', 'ended'])
      const expected = costOf(wordsBefore) + 5 * costOf(words)
      const charged = (await rows()).reduce((sum, { nanoUsd }) => sum + Number(nanoUsd), 0)
      expect(charged).toBe(expected)
      const spent = (await app.llm.usage.spending([await app.llm.keys.get(key.id)])).get(key.id)?.nanoUsd
      expect(Number(spent)).toBe(expected)
      const used = 6 + wordsBefore + 5 * words
      const remaining = async () => {
        const states = await app.llm.limits.of(await app.llm.keys.get(key.id))
        return states.find(({ limit }) => limit === tokensPerDay)?.remaining ?? 0
      }
      await expect
        .poll(remaining, { interval: 200, timeout: 20_000 })
        .toBeGreaterThanOrEqual(tokensPerDay - used)
      // A token per second has come back.
      const elapsedTokens = Math.ceil((performance.now() - leftAt) / 1_000) + 30
      expect(await remaining()).toBeLessThanOrEqual(tokensPerDay - used + elapsedTokens)
      expect(await app.llm.usage.calls({ caller: 'host', limit: 10 })).toMatchObject([
        { status: 'ended', nanoUsd: costOf(words) },
      ])
      // No ended call counts as running.
      const next = await Promise.all(
        Array.from({ length: 2 * streams }, (_, index) => stream(`gate-next${index}`)),
      )
      expect(next.map(({ status }) => status)).toEqual(next.map(() => 200))
      for (let index = 0; index < next.length; index++) engine.open(`gate-next${index}`)
      await Promise.all(next.map((response) => response.text()))
    },
    90_000,
  )
})
