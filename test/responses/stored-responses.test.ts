/** Stored responses of several tenants and processes, and with the options that change what is stored. */
import { join } from 'node:path'
import {
  type Caller,
  createLlm,
  type Interceptor,
  type Llm,
  type LlmOptions,
  routesFor,
} from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'

interface App {
  readonly llm: Llm
  /** Sends a request of the caller `ada` or another one. */
  send(
    path: string,
    body?: object,
    options?: { readonly caller?: Caller; readonly method?: string },
  ): Promise<Answer>
}
interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests check what it is
  readonly body: any
}

const ada: Caller = { id: 'ada', tenant: 'team' }
const ben: Caller = { id: 'ben', tenant: 'team' }
const eve: Caller = { id: 'eve' }

async function open(options: LlmOptions = {}): Promise<App> {
  const llm = await createLlm({
    ...{ engine: scriptedEngine('Hello there.'), models: emptyFolder(), auth: 'host' },
    ...options,
  })
  onTestFinished(() => llm.close())
  let caller = ada
  const handle = toFetchHandler(routesFor(['openai']), llm, { authenticate: async () => caller })
  return {
    llm,
    async send(path, body, { caller: by = ada, method = body ? 'POST' : 'GET' } = {}) {
      caller = by
      const response = await handle(
        new Request(`http://host/v1/${path}`, {
          method,
          headers: { 'content-type': 'application/json' },
          ...(body && { body: JSON.stringify(body) }),
        }),
      )
      const text = await response.text()
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
    },
  }
}

const hi = { model: 'tiny', input: 'My secret.' }

describe('with a store in memory', () => {
  test('callers of another tenant find neither a response nor its items, nor a conversation', async () => {
    const { send } = await open()
    const { body: conversation } = await send('conversations', { items: [{ role: 'user', content: 'Hi' }] })
    const { body: response } = await send('responses', { ...hi, conversation: conversation.id })
    const [item] = (await send(`conversations/${conversation.id}/items`)).body.data
    const paths = [
      `responses/${response.id}`,
      `responses/${response.id}/input_items`,
      `conversations/${conversation.id}`,
      `conversations/${conversation.id}/items`,
      `conversations/${conversation.id}/items/${item.id}`,
    ]

    for (const path of paths) {
      const { status, body } = await send(path, undefined, { caller: eve })
      expect([path, status]).toEqual([path, 404])
      expect(JSON.stringify(body)).not.toContain('secret')
      expect((await send(path, undefined, { caller: ben })).status).toBe(200)
    }
    for (const path of paths.filter((_, index) => index !== 1 && index !== 3))
      expect((await send(path, undefined, { caller: eve, method: 'DELETE' })).status).toBe(404)
    for (const [fields, status] of [
      [{ previous_response_id: response.id }, 400],
      [{ conversation: conversation.id }, 404],
      [{ input: [{ type: 'item_reference', id: item.id }] }, 404],
      [{ input: [{ type: 'item_reference', id: response.output[0].id }] }, 404],
    ] as const)
      expect((await send('responses', { ...hi, ...fields }, { caller: eve })).status).toBe(status)
    expect((await send(`responses/${response.id}`)).body).toEqual(response)
  })

  test('a deleted tenant leaves nothing, also in another app with the same database', async () => {
    const database = join(emptyFolder(), 'modelmount.db')
    const [one, two] = [await open({ database }), await open({ database })]
    const ids: string[] = []
    for (const app of [one, two]) ids.push((await app.send('responses', hi)).body.id)
    const { body: stays } = await two.send('responses', hi, { caller: eve })

    const { deleted } = await one.llm.tenants.delete('team')

    expect(deleted.responses).toBe(1)
    expect((await one.send(`responses/${ids[0]}`)).status).toBe(404)
    await vi.waitFor(async () => expect((await two.send(`responses/${ids[1]}`)).status).toBe(404), {
      ...{ timeout: 10_000, interval: 100 },
    })
    expect((await two.send(`responses/${stays.id}`, undefined, { caller: eve })).status).toBe(200)
  }, 30_000)

  test('an answer is stored as interceptors have mapped it, and the input as the client has sent it', async () => {
    const interceptor: Interceptor = {
      mapEvents: () => (event) =>
        event.type === 'text' ? { ...event, text: event.text.replace('Hello', 'Bye') } : event,
    }
    const { send } = await open({ interceptors: [interceptor] })

    const { body: response } = await send('responses', hi)
    const { body: streamed } = await send('responses', { ...hi, stream: true })
    const [, id] = /"id":"(resp_[\w-]+)"/.exec(streamed) ?? []

    for (const one of [response.id, id]) {
      expect((await send(`responses/${one}`)).body.output[0].content[0].text).toBe('Bye there.')
      expect((await send(`responses/${one}/input_items`)).body.data[0].content[0].text).toBe('My secret.')
    }
  })

  test('requests to stored responses count towards a limit of their own', async () => {
    const { send } = await open()
    const caller = { ...ada, limits: { requestsPerMinute: 2 } }
    const { body } = await send('responses', hi, { caller })

    const statuses: number[] = []
    for (let i = 0; i < 3; i++)
      statuses.push((await send(`responses/${body.id}`, undefined, { caller })).status)

    expect(statuses).toEqual([200, 200, 429])
  })

  test('the history of a request counts towards the memory of bodies', async () => {
    const { send } = await open({ bodies: { maxBytes: '1mb', maxBytesPerCaller: '512kb' } })
    const { body } = await send('responses', { ...hi, input: 'a'.repeat(300_000) })

    const { status } = await send('responses', {
      ...hi,
      input: 'b'.repeat(250_000),
      previous_response_id: body.id,
    })

    expect(status).toBe(429)
  })

  test('a client that leaves during its stream leaves nothing', async () => {
    const engine = scriptedEngine('word '.repeat(1_000), { delayMs: 1 })
    const llm = await createLlm({ engine, models: emptyFolder(), auth: 'host' })
    onTestFinished(() => llm.close())
    const handle = toFetchHandler(routesFor(['openai']), llm, { authenticate: async () => ada })
    const leaving = new AbortController()
    const response = await handle(
      new Request('http://host/v1/responses', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...hi, stream: true }),
        signal: leaving.signal,
      }),
    )
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const { value } = await reader.read()
    const [, id] = /"id":"(resp_[\w-]+)"/.exec(new TextDecoder().decode(value)) ?? []
    leaving.abort()
    await reader.cancel().catch(() => {})
    await expect.poll(() => engine.running).toBe(0)

    const found = await handle(new Request(`http://host/v1/responses/${id}`))

    expect(found.status).toBe(404)
  })
})

test('with `responses.store: false`, nothing is stored, and requests that need it are rejected', async () => {
  const { send } = await open({ responses: { store: false } })

  const { body: response } = await send('responses', { ...hi, store: true })

  expect(response).toMatchObject({ store: false, output: [{ content: [{ text: 'Hello there.' }] }] })
  const none = 'this server does not store responses'
  expect(await send(`responses/${response.id}`)).toMatchObject({
    status: 404,
    body: { error: { message: expect.stringContaining(none) } },
  })
  expect(await send('responses', { ...hi, previous_response_id: response.id })).toMatchObject({
    status: 400,
    body: { error: { code: 'previous_response_not_found', message: expect.stringContaining(none) } },
  })
  expect(await send('responses', { ...hi, conversation: 'conv_1' })).toMatchObject({
    status: 400,
    body: { error: { code: 'unsupported_parameter', param: 'conversation' } },
  })
  const input = [{ type: 'item_reference', id: response.output[0].id }]
  expect(await send('responses', { ...hi, input })).toMatchObject({
    status: 400,
    body: { error: { param: 'input[0].id', message: expect.stringContaining("'store': false") } },
  })
  expect((await send('conversations', {})).status).toBe(404)
})

describe.each(databases())("with `responses.store: 'database'` in $name", ({ fresh }) => {
  test('another process continues a response, until it is deleted or its tenant is', async () => {
    const database = await fresh()
    const options: LlmOptions = { database, responses: { store: 'database' } }
    const [one, two] = [await open(options), await open(options)]
    const { body: conversation } = await one.send('conversations', {})
    const { body: first } = await one.send('responses', { ...hi, conversation: conversation.id })

    const { body: second } = await two.send('responses', { ...hi, previous_response_id: first.id })
    const { body: items } = await one.send(`responses/${second.id}/input_items`)

    expect(items.data).toHaveLength(3)
    expect((await two.send(`conversations/${conversation.id}/items`)).body.data).toHaveLength(2)
    expect((await two.send(`responses/${first.id}`, undefined, { caller: eve })).status).toBe(404)
    await two.send(`responses/${first.id}`, undefined, { method: 'DELETE' })
    expect((await one.send(`conversations/${conversation.id}/items`)).body.data).toEqual([])
    expect((await one.send('responses', { ...hi, previous_response_id: second.id })).status).toBe(400)

    // An app that stores its own responses in memory deletes those of other apps, too.
    const third = await open({ database })
    const { deleted } = await third.llm.tenants.delete('team')
    expect(deleted).toMatchObject({ responses: 1, conversations: 1 })
    expect((await one.send(`responses/${second.id}`)).status).toBe(404)
  })
})

test('a response that is too large for the store is sent anyway, and says that it is not stored', async () => {
  const { send } = await open({ responses: { maxBytesPerTenant: '2kb' } })

  const { body: small } = await send('responses', hi)
  const { body: large } = await send('responses', { ...hi, input: 'a'.repeat(3_000) })

  expect(small.store).toBe(true)
  expect(large).toMatchObject({ store: false, output: [{ content: [{ text: 'Hello there.' }] }] })
  expect((await send(`responses/${large.id}`)).status).toBe(404)
  expect((await send(`responses/${small.id}`)).status).toBe(200)
})

test('if the database fails, a response is sent anyway, and says that it is not stored', async () => {
  const errors: string[] = []
  const logger = { warn: () => {}, error: (_: object, message: string) => void errors.push(message) }
  const database = join(emptyFolder(), 'modelmount.db')
  const { send } = await open({ database, responses: { store: 'database' }, logger })
  const other = await openDatabase(database)
  onTestFinished(() => other.close())
  await other.query('DROP TABLE modelmount_responses')

  const { status, body } = await send('responses', hi)

  expect([status, body.store]).toEqual([200, false])
  expect(errors).toHaveLength(1)
})
