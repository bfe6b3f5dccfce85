/** The calls of two app processes on one database, as two `Llm` objects. */
import { LoginLinks } from '@modelmount/console'
import { consoleRouter } from '@modelmount/console/express'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import express from 'express'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Database } from '../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import { pacedEngine } from '../support/paced-engine.ts'

class App {
  readonly engine = pacedEngine(scriptedEngine(['one ', 'two ', 'three ']))
  llm!: Llm
  server!: Listening
  /** Of a key with all scopes. */
  key = ''

  async open(database: string, key?: string): Promise<this> {
    this.llm = await createLlm({ engine: this.engine, models: emptyFolder(), auth: 'keys', database })
    this.server = await listen(
      express().use('/admin', adminRouter(this.llm)).use('/llm', llmRouter(this.llm)),
    )
    this.key = key ?? (await this.llm.keys.create({ name: 'ops', scopes: ['admin', 'inference'] })).secret
    return this
  }

  send(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.server.url + path, { ...init, headers: { 'x-api-key': this.key } })
  }

  chat(stream: boolean): Promise<Response> {
    const body = { model: 'tiny', stream, messages: [{ role: 'user', content: 'Hello' }] }
    return this.send('/llm/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) })
  }

  async calls(): Promise<{ data: { id: string; process: { id: string } }[]; isShared: boolean }> {
    return (await this.send('/admin/calls')).json() as never
  }

  async cancel(id: string): Promise<{ status: number; body: { status?: string } }> {
    const response = await this.send(`/admin/calls/${id}/cancel`, { method: 'POST' })
    return { status: response.status, body: (await response.json()) as never }
  }

  async close(): Promise<void> {
    this.engine.allow(1_000)
    await this.server.close()
    await this.llm.close()
  }
}

describe.each(databases())('running calls on $name', ({ fresh }) => {
  let one: App
  let two: App
  let database: Database
  beforeEach(async () => {
    const location = await fresh()
    one = await new App().open(location)
    two = await new App().open(location, one.key)
    database = await openDatabase(location)
  })
  afterEach(async () => {
    await Promise.all([one.close(), two.close()])
    await database.close()
  })

  test('each process lists the calls of both, and knows which one runs them', async () => {
    const answers = [one.chat(true), two.chat(false)]
    await vi.waitFor(async () => expect((await one.calls()).data).toHaveLength(2), { timeout: 5_000 })

    const { data, isShared } = await one.calls()
    one.engine.allow(100)
    two.engine.allow(100)
    for (const answer of answers) await (await answer).text()

    expect(isShared).toBe(true)
    expect(new Set(data.map(({ process }) => process.id)).size).toBe(2)
    await vi.waitFor(async () => expect((await two.calls()).data).toEqual([]), { timeout: 5_000 })
    await vi.waitFor(
      async () => expect(await database.query('SELECT process FROM modelmount_running_calls')).toEqual([]),
      { timeout: 5_000 },
    )
  })

  test('a call ends when another process cancels it, after the text that it has generated', async () => {
    const answer = two.chat(true)
    two.engine.allow(3)
    await vi.waitFor(async () => expect((await one.calls()).data).toHaveLength(1), { timeout: 5_000 })
    const [call] = (await one.calls()).data
    const begun = performance.now()

    const { body } = await one.cancel(call?.id ?? '')
    const text = await (await answer).text()

    expect(body).toEqual({ id: call?.id, status: 'requested' })
    expect(performance.now() - begun).toBeLessThan(5_000)
    expect(text).toContain('one ')
    expect(text).toContain('An operator of this app has canceled the call.')
    expect(text).not.toContain('[DONE]')
    await vi.waitFor(async () =>
      expect(await two.llm.usage.calls()).toMatchObject([{ model: 'tiny:latest' }]),
    )
  })

  test('a call of the same process ends at once, with an error that clients do not repeat', async () => {
    const answer = one.chat(false)
    await vi.waitFor(async () => expect((await one.calls()).data).toHaveLength(1))
    const [call] = (await one.calls()).data

    const { body } = await one.cancel(call?.id ?? '')
    const response = await answer

    expect(body.status).toBe('canceled')
    expect(response.status).toBe(403)
    expect((await one.cancel(call?.id ?? '')).status).toBe(404)
    expect((await one.cancel('none%00')).status).toBe(404)
  })

  test('the events have all calls first, then what changes, and end when the app closes', async () => {
    const first = one.chat(true)
    one.engine.allow(2)
    await vi.waitFor(async () => expect((await one.calls()).data).toHaveLength(1))
    const events = readEvents(await one.send('/admin/events'))

    const snapshot = await events.next()
    const second = two.chat(true)
    let isSeen = false
    while (!isSeen) isSeen = ((await events.next()).value?.data.changed ?? []).length > 0
    one.engine.allow(100)
    await (await first).text()
    let ended: readonly string[] = []
    while (ended.length === 0) ended = (await events.next()).value?.data.ended ?? []
    two.engine.allow(100)
    await (await second).text()
    const [closed] = await Promise.all([drain(events), one.llm.close({ drain: '10s' })])

    expect(snapshot.value).toMatchObject({ name: 'calls', id: '0', data: { isShared: true } })
    expect(snapshot.value?.data.data).toHaveLength(1)
    expect(ended).toContain(snapshot.value?.data.data?.[0]?.id)
    expect(closed).toBe(true)
  })

  test('the events of a revoked key end', async () => {
    const { key, secret } = await one.llm.keys.create({ name: 'viewer', scopes: ['admin:read'] })
    const events = readEvents(
      await fetch(`${one.server.url}/admin/events`, { headers: { 'x-api-key': secret } }),
    )
    const first = await events.next()

    await one.llm.keys.revoke(key.id)

    expect(first.value).toMatchObject({ name: 'calls' })
    expect(await drain(events)).toBe(true)
  })

  test('events end after ten minutes, so that the scopes of their reader are checked again', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const events = readEvents(await one.send('/admin/events'))
    await events.next()
    vi.advanceTimersByTime(600_001)
    const isOver = await drain(events)
    vi.useRealTimers()

    expect(isOver).toBe(true)
  })

  test('the calls of a process that has ended without a word are forgotten', async () => {
    await database.query(
      `INSERT INTO modelmount_running_calls (process, host, pid, calls, written_at)
       VALUES ('dead', 'host', 1, '[{"id":"old","startedAt":"2026-01-01T00:00:00.000Z"}]', 1000)`,
    )

    expect((await one.calls()).data).toEqual([])
    expect((await one.cancel('old')).status).toBe(404)
  })
})

test('without a database, the list has the calls of this process only', async () => {
  const engine = pacedEngine(scriptedEngine('one'))
  const llm = await createLlm({ engine, models: emptyFolder() })
  const links = new LoginLinks()
  const server = await listen(express().use('/console', consoleRouter(llm, { loginLinks: links })))
  const token = links.create().replace('#/login?token=', '')
  const login = await fetch(`${server.url}/console/session`, {
    method: 'POST',
    body: JSON.stringify({ token }),
    headers: { 'content-type': 'application/json' },
  })
  const [cookie = ''] = (login.headers.get('set-cookie') ?? '').split(';')
  const list = async () =>
    (await (await fetch(`${server.url}/console/admin/calls`, { headers: { cookie } })).json()) as RunningCalls
  const answer = llm.chat('Hello', { model: 'tiny' })

  await vi.waitFor(async () =>
    expect(await list()).toMatchObject({ isShared: false, data: [{ model: 'tiny:latest' }] }),
  )
  engine.allow(100)
  await answer
  await server.close()
  await llm.close()
})

interface RunningCalls {
  readonly data: readonly { readonly id: string }[]
  readonly isShared: boolean
}

interface CallsEvent {
  readonly name: string | undefined
  readonly id: string | undefined
  readonly data: {
    readonly data?: readonly { readonly id: string }[]
    readonly changed?: readonly object[]
    readonly ended?: readonly string[]
  }
}

async function* readEvents({ body }: Response): AsyncGenerator<CallsEvent, undefined> {
  const events = (body as ReadableStream<Uint8Array<ArrayBuffer>>)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
  for await (const { event, id, data } of events) yield { name: event, id, data: JSON.parse(data) }
}

/** Resolves when the stream ends. */
async function drain(events: AsyncGenerator<CallsEvent, undefined>): Promise<boolean> {
  for await (const _event of events);
  return true
}
