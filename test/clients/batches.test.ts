/** Batches of every JavaScript SDK on every mount, with the built-in model. All servers share one model process. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm } from '@modelmount/core'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { keys, mounts } from './mounts.ts'

const greeting = 'Hello! How can I help you?'
const hello = [{ role: 'user' as const, content: 'Hello' }]
const story = [{ role: 'user' as const, content: 'Tell me a story.' }]
/** Limits for `vi.waitFor`. */
const untilEnded = { interval: 50, timeout: 25_000 }
/** Enough that most of them wait while the first ones run. */
const manyItems = 60

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({
    ...{ models: emptyFolder(), auth: 'host', database: ':memory:', local: { contextSize: 4096 } },
  })
  await llm.chat('Hello', { maxTokens: 1 })
}, 60_000)

afterAll(() => llm.close())

const anthropicClients = {
  '@anthropic-ai/sdk': Anthropic,
  'anthropic-sdk-0': Anthropic0 as unknown as typeof Anthropic,
}

describe.each(Object.entries(mounts))('mounted in %s', (_mount, { handler }) => {
  let url: string
  let close: () => Promise<void>

  beforeAll(async () => {
    const server = await listen(handler(llm))
    url = server.url
    close = server.close
  })

  afterAll(() => close())

  describe.each(Object.entries(anthropicClients))('the SDK %s', (_name, Client) => {
    const connect = (apiKey: string = keys.right) => new Client({ baseURL: url, apiKey, maxRetries: 0 })

    const ended = (client: Anthropic, id: string) =>
      vi.waitFor(async () => {
        const batch = await client.messages.batches.retrieve(id)
        expect(batch.processing_status).toBe('ended')
        return batch
      }, untilEnded)

    test('creates a batch, polls it, reads its results, lists it and deletes it', async () => {
      const client = connect()
      const { batches } = client.messages
      // The types of the newest client lack `temperature`, but the client sends it.
      const params = { model: 'tiny', max_tokens: 50, messages: hello, ...({ temperature: 0 } as object) }

      const created = await batches.create({
        requests: [
          { custom_id: 'good', params },
          { custom_id: 'bad', params: { ...params, max_tokens: -1 } },
          { custom_id: 'story', params: { ...params, messages: story, max_tokens: 20 } },
        ],
      })
      const batch = await ended(client, created.id)

      expect(batch.request_counts).toEqual({
        processing: 0,
        succeeded: 2,
        errored: 1,
        canceled: 0,
        expired: 0,
      })
      const results = new Map<string, Anthropic.Messages.MessageBatchResult>()
      for await (const { custom_id, result } of await batches.results(batch.id))
        results.set(custom_id, result)
      expect(results.get('good')).toMatchObject({
        type: 'succeeded',
        message: { content: [{ text: greeting }], usage: { service_tier: 'batch' } },
      })
      expect(results.get('bad')).toMatchObject({
        type: 'errored',
        error: {
          type: 'error',
          error: {
            type: 'invalid_request_error',
            message: expect.stringContaining('max_tokens: Input should be'),
          },
        },
      })
      expect(results.get('story')).toMatchObject({
        type: 'succeeded',
        message: { stop_reason: 'max_tokens', usage: { output_tokens: 20 } },
      })
      const listed: string[] = []
      for await (const { id } of batches.list({ limit: 1 })) listed.push(id)
      expect(listed).toContain(batch.id)
      expect(await batches.cancel(batch.id)).toMatchObject({ processing_status: 'ended' })
      expect(await batches.delete(batch.id)).toEqual({ id: batch.id, type: 'message_batch_deleted' })
      await expect(batches.retrieve(batch.id)).rejects.toBeInstanceOf(Client.NotFoundError)
      await expect(batches.results(batch.id)).rejects.toBeInstanceOf(Client.NotFoundError)
      await expect(connect(keys.wrong).messages.batches.list()).rejects.toBeInstanceOf(
        Client.AuthenticationError,
      )
    })

    test('gets an answer while a batch runs, and cancels the batch', async () => {
      const client = connect()
      const { batches } = client.beta.messages
      const params = { model: 'tiny', max_tokens: 100, messages: story }
      const requests = Array.from({ length: manyItems }, (_, index) => ({
        custom_id: `item-${index}`,
        params,
      }))

      const { id } = await batches.create({ requests })
      const { content } = await client.messages.create({ ...params, messages: hello })
      const early = await client.messages.batches.results(id).catch((error: unknown) => error)
      // Before it is canceled, because a canceled batch may end at once.
      await expect(batches.delete(id)).rejects.toBeInstanceOf(Client.BadRequestError)
      const canceling = await batches.cancel(id)
      const batch = await ended(client, id)

      expect(content).toMatchObject([{ type: 'text' }])
      expect(early).toBeInstanceOf(Client.AnthropicError)
      expect(canceling).toMatchObject({ processing_status: 'canceling', results_url: null })
      expect(batch.request_counts.canceled).toBeGreaterThan(0)
      const types: string[] = []
      for await (const { result } of await batches.results(id)) types.push(result.type)
      expect(types.filter((type) => type === 'canceled')).toHaveLength(batch.request_counts.canceled)
      expect(types).toHaveLength(manyItems)
      await batches.delete(id)
    })
  })

  describe('the SDK openai', () => {
    const connect = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: keys.right, maxRetries: 0 })
    const chats = { completion_window: '24h', endpoint: '/v1/chat/completions' } as const

    const upload = async (client: OpenAI, requests: Readonly<Record<string, object>>) => {
      const lines = Object.entries(requests).map(([custom_id, fields]) => {
        const body = { model: 'tiny', temperature: 0, messages: hello, ...fields }
        return `${JSON.stringify({ custom_id, method: 'POST', url: chats.endpoint, body })}\n`
      })
      const file = await toFile(Buffer.from(lines.join('')), 'requests.jsonl')
      return { lines, file: await client.files.create({ file, purpose: 'batch' }) }
    }

    const ended = (client: OpenAI, id: string) =>
      vi.waitFor(async () => {
        const batch = await client.batches.retrieve(id)
        expect(['completed', 'failed', 'cancelled']).toContain(batch.status)
        return batch
      }, untilEnded)

    const linesOf = async (client: OpenAI, file: string | undefined) =>
      (await (await client.files.content(String(file))).text())
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))

    test('uploads a file, creates a batch, polls it, reads its files, lists it and deletes the files', async () => {
      const client = connect()

      const { lines, file } = await upload(client, { good: {}, bad: { temperature: 3 } })
      const { id } = await client.batches.create({
        ...{ ...chats, input_file_id: file.id, metadata: { night: 'one' } },
      })
      const batch = await ended(client, id)

      expect(await client.files.retrieve(file.id)).toMatchObject({
        ...{ filename: 'requests.jsonl', purpose: 'batch', bytes: Buffer.byteLength(lines.join('')) },
      })
      expect(await (await client.files.content(file.id)).text()).toBe(lines.join(''))
      expect(batch).toMatchObject({
        status: 'completed',
        metadata: { night: 'one' },
        request_counts: { total: 2, completed: 1, failed: 1 },
      })
      expect(await linesOf(client, batch.output_file_id)).toMatchObject([
        {
          custom_id: 'good',
          response: { status_code: 200, body: { choices: [{ message: { content: greeting } }] } },
          error: null,
        },
      ])
      expect(await linesOf(client, batch.error_file_id)).toMatchObject([
        {
          custom_id: 'bad',
          response: { status_code: 400, body: { error: { param: 'temperature' } } },
          error: null,
        },
      ])
      const batches: string[] = []
      for await (const one of client.batches.list({ limit: 1 })) batches.push(one.id)
      expect(batches).toContain(id)
      const files: string[] = []
      for await (const one of client.files.list({ limit: 1 })) files.push(one.id)
      for (const one of [file.id, batch.output_file_id, batch.error_file_id]) {
        expect(files).toContain(one)
        expect(await client.files.delete(String(one))).toMatchObject({ id: one, deleted: true })
        await expect(client.files.content(String(one))).rejects.toBeInstanceOf(OpenAI.NotFoundError)
      }
    })

    test('gets an answer while a batch runs, and cancels the batch', async () => {
      const client = connect()
      const { file } = await upload(
        client,
        Object.fromEntries(
          Array.from({ length: manyItems }, (_, index) => [
            `item-${index}`,
            { messages: story, max_tokens: 100 },
          ]),
        ),
      )

      const { id } = await client.batches.create({ ...chats, input_file_id: file.id })
      await vi.waitFor(
        async () => expect(await client.batches.retrieve(id)).toMatchObject({ status: 'in_progress' }),
        untilEnded,
      )
      const { choices } = await client.chat.completions.create({
        ...{ model: 'tiny', temperature: 0, messages: hello },
      })
      const canceling = await client.batches.cancel(id)
      const batch = await ended(client, id)

      expect(choices).toMatchObject([{ message: { content: greeting } }])
      expect(canceling.status).toBe('cancelling')
      expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: manyItems } })
      const others = await linesOf(client, batch.error_file_id)
      expect(others.map(({ error }) => error.code)).toEqual(others.map(() => 'batch_cancelled'))
      expect(others.length).toBe(manyItems - (batch.request_counts?.completed ?? 0))
      expect(others.length).toBeGreaterThan(0)
    })

    test('gets the lines that are invalid', async () => {
      const client = connect()
      const file = await toFile(Buffer.from('{"custom_id":"a"}\nhello\n'), 'requests.jsonl')
      const { id: input_file_id } = await client.files.create({ file, purpose: 'batch' })

      const { id } = await client.batches.create({ ...chats, input_file_id })

      expect(await ended(client, id)).toMatchObject({
        status: 'failed',
        errors: { object: 'list', data: [{ line: 1 }, { line: 2, code: 'invalid_json_line' }] },
      })
      await expect(client.batches.create({ ...chats, input_file_id: 'file-x' })).rejects.toMatchObject({
        ...{ status: 400, param: 'input_file_id' },
      })
    })
  })
})
