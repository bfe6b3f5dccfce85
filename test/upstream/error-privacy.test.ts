/** The texts of an upstream server's errors reach neither the caller nor the log: they may repeat a prompt or a secret. */
import { createServer } from 'node:net'
import { createLlm, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { type ApiName, upstreamEngine } from '@modelmount/core/upstream'
import { expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { deepText } from '../support/run-log.ts'
import { sendEvents, sendJson, UpstreamServer } from '../support/upstream-server.ts'

/** Part of each error of the server. It has no space, so that a check of single words does not hide it. */
const canary = 'canary:of:the:server'

interface App {
  readonly engine: Engine
  readonly server: UpstreamServer
  /** Calls the app. Resolves with its status, the text of its response, and everything it has logged. */
  call(path: string, body: object): Promise<{ status: number; text: string; log: string }>
}

async function start(api: ApiName, url?: string): Promise<App> {
  const server = await UpstreamServer.start()
  const lines: string[] = []
  const write = (details: object, message?: string): void =>
    void lines.push(`${message} ${deepText(details)}`)
  const engine = upstreamEngine({ url: url ?? server.url, api, models: ['small'] })
  const logger = { debug: write, info: write, warn: write, error: write }
  const llm = await createLlm({ engine, models: emptyFolder(), logger })
  const front = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(async () => {
    await front.close()
    await llm.close()
    await server.close()
  })
  return {
    ...{ engine, server },
    async call(path, body) {
      const response = await fetch(front.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'small', ...body }),
      })
      return { status: response.status, text: await response.text(), log: lines.join('\n') }
    },
  }
}

const chat = { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 }
/** Errors of another app with Modelmount are those of this package, and are passed on. */
const apis = ['openai', 'anthropic', 'ollama'] as const
const error = { type: 'odd_error', code: 'E-17', message: canary, param: canary }

test.each(
  apis.flatMap((api) => [400, 401, 404, 413, 429, 500, 501, 307].map((status) => [api, status] as const)),
)('%s: a response with status %s is logged by its facts only', async (api, status) => {
  const { server, call, engine } = await start(api)
  server.answer = (response) => sendJson(response, { type: 'error', error }, status)
  const input = {
    kind: 'chat',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  } as const
  const { signal } = new AbortController()

  const result = await call('/v1/chat/completions', chat)
  const thrown = await collect(engine.generate({ model: 'small', input, maxTokens: 8 }, { signal })).catch(
    (cause: unknown) => cause,
  )

  expect(result.status).toBeGreaterThanOrEqual(400)
  expect(result.text + result.log + deepText(thrown)).not.toContain(canary)
  expect(thrown).toHaveProperty(
    'cause.message',
    `The upstream server answered with status ${status} (application/json, 123 characters, type odd_error, code E-17).`,
  )
})

test.each(apis)('%s: fields that are no short identifiers, and other bodies, are not logged', async (api) => {
  const { server, call } = await start(api)
  for (const body of [
    { error: { type: `${canary} and more`, code: { text: canary } } },
    { error: canary },
    { error: [canary] },
    { error: { type: 'x'.repeat(65), message: canary } },
  ]) {
    server.answer = (response) => sendJson(response, body, 500)
    await call('/v1/chat/completions', chat)
  }
  server.answer = (response) =>
    response.writeHead(500, { 'content-type': `text/${canary}` }).end(`<p>${canary.repeat(1_000)}</p>`)

  const { text, log } = await call('/v1/chat/completions', chat)

  expect(text + log).not.toContain(canary)
  expect(log).not.toContain('x'.repeat(65))
  expect(log).toContain('The upstream server answered with status 500 (2000 or more characters).')
})

/** The first event of an answer of each API, and a text that is no JSON. */
const inBand: Readonly<
  Record<(typeof apis)[number], { readonly error: object | string; readonly invalid: string }>
> = {
  openai: { error: { error }, invalid: `data: {"choices": ${canary}\n\n` },
  anthropic: {
    error: `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`,
    invalid: `event: message_start\ndata: {"type": ${canary}\n\n`,
  },
  ollama: { error: `${JSON.stringify({ error: canary })}\n`, invalid: `{"model": ${canary}\n` },
}

test.each(apis)(
  '%s: an error within an answer, and an answer that is no JSON, is not logged',
  async (api) => {
    const { server, call } = await start(api)
    const bodies = [inBand[api].error, inBand[api].invalid]
    for (const stream of [true, false])
      for (const body of bodies) {
        server.answer = (response) => sendEvents(response, body).end()
        const { text, log } = await call('/v1/chat/completions', { ...chat, stream })
        expect(text).toContain('upstream server')
        expect(text + log).not.toContain(canary)
      }

    const { log } = await call('/v1/chat/completions', chat)

    expect(log).toMatch(/The upstream server sent an error \(\d+ characters/)
    expect(log).toContain('it is no JSON')
  },
)

test.each(['openai', 'ollama'] as const)('%s: an error of embeddings is not logged', async (api) => {
  const { server, call } = await start(api)
  for (const send of [(body: object) => JSON.stringify(body), () => `{"data": ${canary}`, () => canary]) {
    server.answer = (response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(send({ error }))
    const { status, text, log } = await call('/v1/embeddings', { input: 'Hello' })
    expect(status).toBe(500)
    expect(text + log).not.toContain(canary)
  }
})

test('a server that does not speak HTTP is logged without its words', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(`${canary} is what I say\r\n\r\n`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const { call } = await start('openai', `http://127.0.0.1:${port}`)

  const { status, text, log } = await call('/v1/chat/completions', chat)

  expect(status).toBe(500)
  expect(log).toContain('it is no HTTP')
  expect(text + log).not.toContain(canary)
})
