/**
 * Secrets and prompts must not appear in logs, printed output, files, databases, errors or response headers.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { emptyFolder } from './support/empty-folder.ts'
import { promptCanary } from './support/leaks.ts'
import { type Listening, listen } from './support/listen.ts'
import { deepText } from './support/run-log.ts'

/** A text for prompts, tools and other user data. It is too unusual for a model to emit by chance. */
const canary = promptCanary
/** A well-formed secret that belongs to no key. */
const forged = 'sk-mm-xq7canaryofakey-xq7canaryofakeyxq7canaryofakeyxq7canaryofak'

const folder = emptyFolder()
const logged: string[] = []
const printed: string[] = []
const errors: string[] = []
let llm: Llm
let server: Listening
/** The secrets of all keys in this test. */
const secrets: string[] = []

/** Records all lines of a log level, including all properties of their details. */
const record = (level: string) => (details: object, message: string) => {
  logged.push(`${level} ${message} ${deepText(details)}`)
}

beforeAll(async () => {
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      printed.push(String(chunk))
      return true
    })
  llm = await createLlm({
    models: folder,
    auth: 'keys',
    // The calls with wrong keys come from one address.
    maxFailedAuthentications: 1_000,
    database: join(folder, 'modelmount.db'),
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    logger: { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') },
    accessLog: true,
    local: { contextSize: 1_024 },
  })
  const app = express()
    .use('/admin', adminRouter(llm))
    .use(llmRouter(llm, { unknownRoutes: 'error' }))
  server = await listen(app)
}, 60_000)

afterAll(async () => {
  await server?.close()
  await llm?.close()
})

async function keyOf(settings: Parameters<Llm['keys']['create']>[0]): Promise<string> {
  const { secret } = await llm.keys.create(settings)
  secrets.push(secret)
  return secret
}

interface Call {
  readonly path: string
  readonly body: object | string
}

const messages = [
  { role: 'system', content: `You know ${canary}.` },
  { role: 'user', content: canary },
]
const [, user] = messages
const tool = { name: 'look', description: canary, parameters: { type: 'object', properties: {} } }

/** Calls that succeed: each API, with each form of prompt. */
const good: readonly Call[] = [
  { path: '/v1/chat/completions', body: { messages, max_tokens: 4 } },
  { path: '/v1/chat/completions', body: { messages, max_tokens: 4, stream: true } },
  {
    path: '/v1/chat/completions',
    body: { messages, max_tokens: 4, tools: [{ type: 'function', function: tool }], user: canary },
  },
  { path: '/v1/completions', body: { prompt: canary, suffix: null, max_tokens: 4 } },
  { path: '/v1/completions', body: { prompt: [canary, canary], echo: true, max_tokens: 4, stream: true } },
  { path: '/v1/messages', body: { system: canary, messages: [user], max_tokens: 4 } },
  { path: '/v1/messages', body: { messages: [user], max_tokens: 4, stream: true } },
  {
    path: '/v1/messages',
    body: {
      system: [{ type: 'text', text: canary, cache_control: { type: 'ephemeral' } }],
      messages: [user],
      max_tokens: 4,
    },
  },
  { path: '/v1/messages/count_tokens', body: { messages: [user] } },
  { path: '/api/chat', body: { messages, options: { num_predict: 4 } } },
  { path: '/api/chat', body: { messages, options: { num_predict: 4 }, stream: false } },
  { path: '/api/generate', body: { prompt: canary, system: canary, options: { num_predict: 4 } } },
  { path: '/api/generate', body: { prompt: canary, raw: true, options: { num_predict: 4 }, stream: false } },
]

const long = `${canary} `.repeat(2_000)

/** Calls that are rejected, each for a different reason. */
const bad: readonly Call[] = [
  ...['/v1/chat/completions', '/v1/messages', '/api/chat'].flatMap((path): Call[] => [
    { path, body: `{"model":"tiny","max_tokens":4,"messages":[{"role":"user","content":"${canary}` },
    { path, body: { messages: [{ role: 'user', content: { text: canary } }], max_tokens: 4 } },
    { path, body: { messages: canary, max_tokens: 4 } },
    { path, body: { messages: [{ ...user, role: 7 }], max_tokens: 4 } },
    { path, body: { messages: [{ role: 'user', content: long }], max_tokens: 4, truncate: false } },
    { path, body: { messages: [user], model: 'absent', max_tokens: 4 } },
    { path, body: { messages: [user], max_tokens: 4, options: { temperature: 'hot' }, temperature: 'hot' } },
  ]),
  { path: '/v1/completions', body: { prompt: { text: canary } } },
  { path: '/v1/completions', body: { prompt: canary, suffix: canary } },
  { path: '/v1/embeddings', body: { input: canary } },
  { path: '/api/embed', body: { input: canary } },
  { path: '/api/generate', body: { prompt: canary, suffix: canary } },
  { path: `/v1/${'nope'}`, body: { prompt: canary } },
]

async function call({ path, body }: Call, headers: Record<string, string>): Promise<number> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify({ model: 'tiny', ...body }),
  })
  const text = await response.text()
  const head = JSON.stringify([...response.headers])
  if (response.status >= 400) errors.push(`${path} ${head} ${text}`)
  else errors.push(`${path} ${head}`)
  return response.status
}

/** Path and bytes of each file in a folder and its subfolders. */
const filesIn = (root: string): readonly (readonly [path: string, bytes: Buffer])[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => [path, readFileSync(path)])

test('calls of every kind leave no secret and no prompt in logs, files, databases or errors', async () => {
  const secret = await keyOf({ name: 'all', scopes: ['inference', 'models'] })
  const poor = await keyOf({ name: 'poor', spendingLimit: { usd: '0.000000001', period: 'day' } })
  const slow = await keyOf({ name: 'slow', limits: { requestsPerMinute: 1 } })
  const admin = await keyOf({ name: 'admin', scopes: ['admin'] })
  const gone = await keyOf({ name: 'gone' })
  const [{ id = '' } = {}] = (await llm.keys.list()).filter(({ name }) => name === 'gone')
  const { secret: rotated } = await llm.keys.rotate(id)
  secrets.push(rotated)
  await llm.keys.revoke(id)
  secrets.push(forged)

  for (const [index, one] of good.entries())
    expect([
      one.path,
      await call(one, index % 2 ? { 'x-api-key': secret } : { authorization: `Bearer ${secret}` }),
    ]).toEqual([one.path, 200])
  for (const one of bad) expect(await call(one, { 'x-api-key': secret })).toBeGreaterThanOrEqual(400)
  for (const one of good) {
    for (const key of [gone, rotated, forged]) expect(await call(one, { 'x-api-key': key })).toBe(401)
    expect(await call(one, { 'x-api-key': secret, authorization: `Bearer ${forged}` })).toBe(401)
    expect(await call(one, { 'x-api-key': admin })).toBe(403)
    if (!one.path.endsWith('count_tokens'))
      expect([400, 429]).toContain(await call(one, { 'x-api-key': poor }))
  }
  expect(await call(good[0] as Call, { 'x-api-key': slow })).toBe(200)
  expect(await call(good[0] as Call, { 'x-api-key': slow })).toBe(429)
  await failMidway(secret)
  await manageKeys(admin)

  // The files must be read before the model process ends, because it removes its folder.
  const files = [...filesIn(folder), ...filesIn(String(process.env.XDG_RUNTIME_DIR))]
  expect(files.map(([path]) => path).filter((path) => path.endsWith('log'))).not.toEqual([])
  expect(files.map(([path]) => path).filter((path) => path.endsWith('modelmount.db'))).toHaveLength(1)
  expect(logged.filter((line) => line.startsWith('debug'))).not.toEqual([])
  for (const start of ['error', 'info call ended', 'info call failed', 'info model loaded'])
    expect(logged.filter((line) => line.startsWith(start))).not.toEqual([])
  expect(await llm.usage.calls()).not.toEqual([])

  const found = (text: string | Buffer): readonly string[] =>
    [canary, ...secrets.map(privatePart)].filter((word) => text.includes(word))
  for (const text of [...logged, ...printed, ...errors]) expect(found(text), text.slice(0, 500)).toEqual([])
  for (const [path, bytes] of files) expect([path, found(bytes)]).toEqual([path, []])
}, 120_000)

/** The part of a secret that must never be written. The other part is public: it is the hint of the key. */
const privatePart = (secret: string): string => secret.slice(-43)

/** Kills the model process during a stream. */
async function failMidway(secret: string): Promise<void> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': secret },
    body: JSON.stringify({ model: 'tiny', messages, stream: true, logit_bias: { 112: 100 } }),
  })
  let received = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    if (received === '') process.kill(llm.loaded()[0]?.processId as number, 'SIGKILL')
    received += Buffer.from(bytes).toString()
  }
  expect(received).toContain('"error"')
  errors.push(received)
  expect(await call(good[0] as Call, { 'x-api-key': secret })).toBe(200)
}

/** Creates and lists keys through the admin API. Only the response that creates a key contains its secret. */
async function manageKeys(admin: string): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-api-key': admin }
  const made = await fetch(`${server.url}/admin/keys`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'made' }),
  })
  const { secret } = (await made.json()) as { secret: string }
  secrets.push(secret)
  const listed = await fetch(`${server.url}/admin/keys`, { headers })
  expect([made.status, listed.status]).toEqual([201, 200])
  errors.push(await listed.text())
}
