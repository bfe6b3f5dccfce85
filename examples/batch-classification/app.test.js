/** Tests the jobs with the built-in model, and with a script instead of a model. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createApp } from './app.js'

const folder = mkdtempSync(join(tmpdir(), 'batches-'))
let databases = 0

afterAll(() => rmSync(folder, { recursive: true }))

const categories = ['billing', 'bug', 'question']

describe.each([
  ['the built-in model', () => undefined],
  ['a script', () => scriptedEngine('{"category":"bug"}')],
])('with %s', (_what, createEngine) => {
  async function start(tickets, options = {}) {
    const engine = createEngine()
    const database = join(folder, `${databases++}.db`)
    const llm = await createLlm({ database, ...(engine && { engine }), ...options })
    const { app, classification } = await createApp(llm, tickets)
    const close = async () => {
      await classification.close()
      await llm.close()
    }
    onTestFinished(close)
    return { app, llm, close }
  }

  test('a job classifies the tickets, and the model answers meanwhile', async () => {
    const tickets = createTickets(12)
    const { app, llm } = await start(tickets)

    const { body: job } = await request(app).post('/jobs').expect(202)
    const { body: again } = await request(app).post('/jobs').expect(202)
    const { body: answer } = await request(app)
      .post('/llm/v1/messages')
      .send({ model: 'tiny', max_tokens: 20, messages: [{ role: 'user', content: 'Hi' }] })
      .expect(200)

    expect(again.id).toBe(job.id)
    expect(answer.content[0].text).not.toBe('')
    await vi.waitFor(() => expect([...tickets.values()].every(hasCategory)).toBe(true), 20_000)
    const { body: ended } = await request(app).get(`/jobs/${job.id}`).expect(200)
    expect(ended).toMatchObject({ status: 'ended', counts: { processing: 0, succeeded: 12 } })
    const { body: listed } = await request(app).get('/tickets').expect(200)
    expect(listed).toEqual([...tickets.values()])
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([
      { group: 'anonymous', calls: 1 },
      { group: 'classification', batch: { calls: 12 } },
    ])
  })

  test('a job that was interrupted by a restart continues', async () => {
    const tickets = createTickets(3)
    const database = join(folder, `${databases++}.db`)
    const first = await start(tickets, { database, batches: { run: false } })
    const { body: job } = await request(first.app).post('/jobs').expect(202)
    await first.close()
    expect([...tickets.values()].some(hasCategory)).toBe(false)

    const { app } = await start(tickets, { database })

    await vi.waitFor(() => expect([...tickets.values()].every(hasCategory)).toBe(true), 20_000)
    const { body: ended } = await request(app).get(`/jobs/${job.id}`).expect(200)
    expect(ended).toMatchObject({ status: 'ended', counts: { succeeded: 3 } })
  })

  test('there is no job without tickets, and an unknown job is 404', async () => {
    const { app } = await start(new Map())

    await request(app).post('/jobs').expect(204)
    await request(app).get('/jobs/msgbatch_unknown').expect(404, { error: 'no such job' })
  })
})

test('a ticket whose answer is cut off keeps no category', async () => {
  const tickets = createTickets(1)
  const llm = await createLlm({
    engine: scriptedEngine(`{"category":"${'bug '.repeat(60)}`),
    database: join(folder, `${databases++}.db`),
  })
  const { app, classification } = await createApp(llm, tickets)
  onTestFinished(async () => {
    await classification.close()
    await llm.close()
  })

  const { body: job } = await request(app).post('/jobs').expect(202)

  await vi.waitFor(async () => {
    const { body } = await request(app).get(`/jobs/${job.id}`)
    expect(body.status).toBe('ended')
  }, 20_000)
  expect([...tickets.values()].some(hasCategory)).toBe(false)
})

const createTickets = (count) =>
  new Map(
    Array.from({ length: count }, (_, index) => `ticket-${index}`).map((id) => [
      id,
      { id, text: `My order ${id} has not arrived.` },
    ]),
  )

const hasCategory = ({ category }) => category !== undefined && categories.includes(category)

test('the model stops when a client disconnects', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const llm = await createLlm({ engine, database: join(folder, `${databases++}.db`) })
  const { app, classification } = await createApp(llm, createTickets(0))
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.close()
    await classification.close()
    await llm.close()
  })
  await once(server, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${server.address().port}/llm/v1/messages`, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny', max_tokens: 1_000, messages: [{ role: 'user', content: 'Hi' }] }),
    signal: client.signal,
  })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
