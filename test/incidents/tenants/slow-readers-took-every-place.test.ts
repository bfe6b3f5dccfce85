/**
 * Incident C-8: slow readers. 64 clients that did not read their streams held all permits of a model, so all
 * other callers waited.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { type Caller, createLlm, type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { listen } from '../../support/listen.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(options: Parameters<typeof createLlm>[0]): Promise<Llm> {
  const llm = await createLlm({ auth: 'host', database: ':memory:', ...options })
  closing.push(() => llm.close())
  return llm
}

const ann: Caller = { id: 'ann' }
const bob: Caller = { id: 'bob' }
/** The permits of a model. */
const permits = 64
const messages = [{ role: 'user', content: 'Hi' }]
const answers = [
  { path: '/v1/chat/completions', body: { messages } },
  { path: '/v1/completions', body: { prompt: ['One', 'Two', 'Three'], max_tokens: 1_000 } },
  { path: '/v1/messages', body: { messages, max_tokens: 1_000 } },
  { path: '/api/chat', body: { messages } },
]

const ask = (serve: (request: Request) => Promise<Response>, path: string, body: object): Promise<Response> =>
  serve(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'tiny', stream: true, ...body }),
    }),
  )

describe.each(answers)('64 unread streams of $path', ({ path, body }) => {
  test('delay no other caller, and are complete when they are read', async () => {
    const llm = await start({ engine: scriptedEngine('word '.repeat(200).trim()) })
    const as = (caller: Caller) => toFetchHandler(routesFor(), llm, { authenticate: () => caller })
    const unread = await Promise.all(Array.from({ length: permits }, () => ask(as(ann), path, body)))

    const other = await (await ask(as(bob), path, body)).text()

    const pieces = (stream: string): number => stream.match(/ ?word"/g)?.length ?? 0
    expect(pieces(other)).toBeGreaterThanOrEqual(200)
    for (const response of unread) expect(pieces(await response.text())).toBe(pieces(other))
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([
      { group: 'ann', calls: permits, undeliveredTokens: 0 },
      { group: 'bob', calls: 1, undeliveredTokens: 0 },
    ])
  })
})

test('the connection of a client that reads nothing is closed, and what it did not get is not charged', async () => {
  // More than the buffers of a socket hold.
  const [words, letters] = [400, 64 * 1024]
  const engine = scriptedEngine(Array<string>(words).fill('x'.repeat(letters)))
  const prices = { '*': { inputPerMillionUsd: 0, outputPerMillionUsd: 1 } }
  const llm = await start({
    engine,
    prices,
    outputBuffer: { perCaller: '1gb', total: '1gb', stallTimeout: '1s' },
  })
  const server = await listen(express().use(llmRouter(llm, { authenticate: () => ann })))
  closing.push(() => server.close())
  const body = JSON.stringify({ model: 'tiny', stream: true, messages })

  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').pause()
  socket.on('error', () => {})
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await expect.poll(() => llm.usage.calls(), { timeout: 10_000 }).toHaveLength(1)
  const [call] = await llm.usage.calls()
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await once(socket.resume(), 'close')

  expect(call).toMatchObject({ status: 'aborted' })
  expect(call?.tokens.output).toBeGreaterThan(0)
  expect((call?.tokens.output ?? 0) + (call?.undeliveredTokens ?? 0)).toBe(words)
  expect(call?.nanoUsd).toBe((call?.tokens.output ?? 0) * 1_000)
  expect(bytes).toBeLessThan(words * letters)
})
