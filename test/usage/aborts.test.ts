import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { type Listening, listen } from '../support/listen.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const caller: Caller = { id: 'key_1', key: { id: 'key_1', name: 'Reports' } }
const messages = [{ role: 'user', content: 'Hi' }]
const words = 2_000

const routes = [
  { dialect: 'openai', path: '/v1/chat/completions', body: { messages }, piece: /"content":" ?word"/g },
  {
    dialect: 'anthropic',
    path: '/v1/messages',
    body: { messages, max_tokens: words },
    piece: /"text":" ?word"/g,
  },
  { dialect: 'ollama', path: '/api/chat', body: { messages }, piece: /"content":" ?word"/g },
]

describe.each(routes)('the charge of a stream of the $dialect API', ({ dialect, path, body, piece }) => {
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  async function serve(delayMs: number): Promise<{ llm: Llm; server: Listening; pulled: () => number }> {
    let pulled = 0
    const scripted = scriptedEngine('word '.repeat(words).trim(), { delayMs })
    const engine = {
      ...scripted,
      async *generate(...args: Parameters<typeof scripted.generate>) {
        for await (const event of scripted.generate(...args)) {
          if (event.type === 'text') pulled++
          yield event
        }
      },
    }
    const llm = await createLlm({ engine, database: ':memory:', prices, auth: 'host' })
    closing.push(() => llm.close())
    const server = await listen(express().use(llmRouter(llm, { authenticate: () => caller })))
    closing.push(() => server.close())
    return { llm, server, pulled: () => pulled }
  }
  const ask = (server: Listening, signal: AbortSignal): Promise<Response> =>
    fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'tiny', stream: true, ...body }),
      signal,
    })
  const row = async (llm: Llm) => {
    for (let tries = 0; tries < 500; tries++) {
      const [call] = await llm.usage.calls()
      if (call) return call
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error('The ledger has no row for the call.')
  }

  test('covers only delivered tokens if the client aborts, and the other tokens are recorded as undelivered', async () => {
    const { llm, server, pulled } = await serve(2)
    const controller = new AbortController()
    const response = await ask(server, controller.signal)
    let read = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      read += Buffer.from(chunk).toString()
      if ((read.match(piece)?.length ?? 0) >= 5) break
    }
    controller.abort()

    const call = await row(llm)
    expect(call).toMatchObject({ status: 'aborted', dialect, model: 'tiny:latest', keyName: 'Reports' })
    // All tokens that the client received are charged. The token that comes with the abort is not counted.
    expect(call.tokens.output).toBeGreaterThanOrEqual(read.match(piece)?.length ?? 0)
    const missing = pulled() - call.tokens.output - call.undeliveredTokens
    expect(missing).toBeGreaterThanOrEqual(0)
    expect(missing).toBeLessThanOrEqual(1)
    expect(call.tokens.output).toBeLessThan(words)
    expect(call.nanoUsd).toBe(1_000 + call.tokens.output * 2_000)
  })

  test('covers all tokens that the engine counts if the client reads to the end', async () => {
    const { llm, server } = await serve(0)

    await (await ask(server, new AbortController().signal)).text()

    expect(await row(llm)).toMatchObject({
      status: 'ended',
      dialect,
      tokens: { input: 1, output: words },
      undeliveredTokens: 0,
      nanoUsd: 1_000 + words * 2_000,
    })
  })
})
