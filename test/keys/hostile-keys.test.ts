/** Invalid and hostile API keys. Each API rejects them in its own error format, in every mount. */
import { once } from 'node:events'
import { type IncomingMessage, type RequestListener, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter as expressAdmin, llmRouter as expressRouter } from '@modelmount/express'
import { adminPlugin } from '@modelmount/fastify'
import { adminRouter as koaAdmin, llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { fastifyHandler } from '../support/fastify.ts'
import { listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'
import { runLog } from '../support/run-log.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  Express: (llm) => express().use('/admin', expressAdmin(llm)).use(expressRouter(llm)),
  Fastify: (llm) => {
    const app = fastify()
    app.register(adminPlugin, { llm, prefix: '/admin' })
    return fastifyHandler(llm, {}, app)
  },
  Koa: (llm) => {
    const admin = koaAdmin(llm).prefix('/admin')
    return new Koa().use(admin.routes()).use(koaRouter(llm).routes()).callback()
  },
  Nest: (llm) => nestHandler(llm, { adminPath: 'admin' }),
}

const messages = [{ role: 'user', content: 'Hi' }]
const wrong = 'Invalid API key: it is unknown, revoked or expired.'
const missing = 'API key required. Send it as `x-api-key`, or as `authorization: Bearer`.'

/** One route of each API, with the body of its 401 response. */
const routes = [
  {
    path: '/v1/chat/completions',
    body: { model: 'tiny', messages },
    refusal: (message: string) => ({ error: { message, type: 'invalid_request_error' } }),
  },
  {
    path: '/v1/messages',
    body: { model: 'tiny', messages, max_tokens: 5 },
    refusal: (message: string) => ({ type: 'error', error: { type: 'authentication_error', message } }),
  },
  {
    path: '/api/chat',
    body: { model: 'tiny', messages, stream: false },
    refusal: (error: string) => ({ error }),
  },
  {
    path: '/admin/keys',
    body: { name: 'mine' },
    refusal: (message: string) => ({ error: { code: 'authentication', message } }),
  },
]

/** Keys with one fault each. Most are variants of a valid key. */
const hostile = (secret: string): Readonly<Record<string, string>> => ({
  'with a quote': `${secret}'`,
  'that ends a statement': `' OR '1'='1`,
  'that would drop a table': `${secret.slice(0, -30)}'); DROP TABLE k; --`,
  'with a double quote': `"${secret}"`,
  'with a backslash': `${secret.slice(0, -1)}\\`,
  'with wildcards': `sk-mm-${'%'.repeat(16)}-${'_'.repeat(43)}`,
  'with an encoded NUL': `${secret}%00`,
  'with letters of Latin-1': `${secret.slice(0, -1)}\u00e9`,
  twice: `${secret}, ${secret}`,
  'cut off': secret.slice(0, -1),
  'of the same length': `${secret.slice(0, -6)}AAAAAA`,
  'of a megabyte': `${secret}${'a'.repeat(2 ** 20)}`,
  'of a megabyte of quotes': "'".repeat(2 ** 20),
})

describe.each(Object.keys(mounts))('API keys in %s', (name) => {
  let url: string
  let secret: string
  let llm: Llm
  const folder = emptyFolder()

  beforeAll(async () => {
    llm = await createLlm({
      engine: scriptedEngine('Hello.'),
      models: folder,
      auth: 'keys',
      database: ':memory:',
      // All wrong keys come from one address.
      maxFailedAuthentications: 1_000,
      logger: runLog,
    })
    secret = (await llm.keys.create({ name: 'good', scopes: ['inference', 'admin'] })).secret
    // Node's default limit for headers is 16 KiB. A host app may raise it.
    const listening = await listen(mounts[name]?.(llm) as RequestListener, { maxHeaderSize: 2 ** 22 })
    url = listening.url
    return async () => {
      await listening.close()
      await llm.close()
    }
  })

  async function ask(path: string, body: object, headers: Record<string, string>) {
    const outgoing = request(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
    })
    outgoing.end(JSON.stringify(body))
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, answer: JSON.parse(await text(answer)) as object }
  }
  const headersOf = (key: string): readonly Record<string, string>[] => [
    { 'x-api-key': key },
    { authorization: `Bearer ${key}` },
  ]

  test.each(routes)('$path rejects hostile keys with 401', async ({ path, body, refusal }) => {
    for (const [what, key] of Object.entries(hostile(secret))) {
      for (const headers of headersOf(key)) {
        const { status, answer } = await ask(path, body, headers)
        expect([what, status]).toEqual([what, 401])
        // A bearer token has no spaces, so a value with spaces counts as no key.
        const message = 'authorization' in headers && key.includes(' ') ? missing : wrong
        expect(answer, what).toMatchObject(refusal(message))
      }
    }
    for (const headers of headersOf(secret)) expect((await ask(path, body, headers)).status).toBeLessThan(300)
    // Rejected requests created no key. On `/admin/keys`, the line before created two.
    expect((await llm.keys.list()).filter(({ name }) => name === 'mine').length).toBe(
      path === '/admin/keys' ? 2 : 0,
    )
  })

  test('Node rejects a header of one megabyte, and the next call succeeds', async () => {
    const listening = await listen(mounts[name]?.(llm) as RequestListener)
    onTestFinished(listening.close)
    const sent = (key: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const outgoing = request(`${listening.url}/v1/models`, { headers: { 'x-api-key': key } })
        outgoing.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
        outgoing.end()
      })

    expect(await sent('a'.repeat(2 ** 20))).toBe(431)
    expect([await sent('a'.repeat(10_000)), await sent(secret)]).toEqual([401, 200])
  })

  test('Node rejects a NUL in a header, and the next call succeeds', async () => {
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${secret}\0\r\ncontent-length: 2\r\n\r\n{}`,
    )

    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
    const [good] = routes
    expect((await ask(good?.path ?? '', good?.body ?? {}, { 'x-api-key': secret })).status).toBe(200)
  })
})
