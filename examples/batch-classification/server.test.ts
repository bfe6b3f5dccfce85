import { join } from 'node:path'
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import type { Express } from 'express'
import request from 'supertest'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

interface Ticket {
  readonly id: string
  readonly text: string
  category?: string
}

const categories = ['billing', 'bug', 'question']

describe.each<[what: string, createEngine: () => Engine | undefined]>([
  ['the built-in model', () => undefined],
  ['a script', () => scriptedEngine('{"category":"bug"}')],
])('with %s', (_what, createEngine) => {
  const folder = emptyFolder()
  let databases = 0

  async function start(
    tickets: ReadonlyMap<string, Ticket>,
    options: LlmOptions = {},
  ): Promise<{ app: Express; llm: Llm; close: () => Promise<void> }> {
    const engine = createEngine()
    const database = join(folder, `${databases++}.db`)
    const llm = await createLlm({ models: folder, database, ...(engine && { engine }), ...options })
    const { app, classification } = await createApp(llm, tickets)
    const close = async (): Promise<void> => {
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
    const database = join(folder, 'restart.db')
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
  const folder = emptyFolder()
  const tickets = createTickets(1)
  const llm = await createLlm({
    engine: scriptedEngine(`{"category":"${'bug '.repeat(60)}`),
    models: folder,
    database: join(folder, 'modelmount.db'),
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

const createTickets = (count: number): Map<string, Ticket> =>
  new Map(
    Array.from({ length: count }, (_, index) => `ticket-${index}`).map((id) => [
      id,
      { id, text: `My order ${id} has not arrived.` },
    ]),
  )

const hasCategory = ({ category }: Ticket): boolean => category !== undefined && categories.includes(category)
