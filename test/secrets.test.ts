/** Neither keys nor prompts are written anywhere but into answers: canaries of both, and all places that something is kept in. */
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

/** In prompts, tools, suffixes and whatever else is a user's; nothing that a model says by chance. */
const canary = promptCanary
/** Of a key that nobody has. */
const forged = 'sk-mm-xq7canaryofakey-xq7canaryofakeyxq7canaryofakeyxq7canaryofak'

const folder = emptyFolder()
const logged: string[] = []
const printed: string[] = []
const errors: string[] = []
let llm: Llm
let server: Listening
/** Of keys, all that there are. */
const secrets: string[] = []

/** Keeps everything, at every level, with all that hangs on it. */
const keep = (level: string) => (details: object, message: string) => {
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
    database: join(folder, 'modelmount.db'),
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    logger: { debug: keep('debug'), warn: keep('warn'), error: keep('error') },
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

/** Calls that are answered: of each API, in each way that a prompt is said. */
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

/** Calls that are refused, each for another reason. */
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

/** All that is in a folder, as bytes that may be text. */
const filesIn = (root: string): readonly (readonly [path: string, bytes: Buffer])[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => [path, readFileSync(path)])

test('calls of all kinds leave no trace of their keys and prompts', async () => {
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

  // Before the process leaves, and its folder with it.
  const files = [...filesIn(folder), ...filesIn(String(process.env.XDG_RUNTIME_DIR))]
  expect(files.map(([path]) => path).filter((path) => path.endsWith('log'))).not.toEqual([])
  expect(files.map(([path]) => path).filter((path) => path.endsWith('modelmount.db'))).toHaveLength(1)
  expect(logged.filter((line) => line.startsWith('debug'))).not.toEqual([])
  expect(logged.filter((line) => line.startsWith('error'))).not.toEqual([])
  expect(await llm.usage.calls()).not.toEqual([])

  const found = (text: string | Buffer): readonly string[] =>
    [canary, ...secrets.map(privatePart)].filter((word) => text.includes(word))
  for (const text of [...logged, ...printed, ...errors]) expect(found(text), text.slice(0, 500)).toEqual([])
  for (const [path, bytes] of files) expect([path, found(bytes)]).toEqual([path, []])
}, 120_000)

/** Who has ears hears the public part; it opens nothing. */
const privatePart = (secret: string): string => secret.slice(-43)

/** Its model process dies while it speaks. */
async function failMidway(secret: string): Promise<void> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': secret },
    body: JSON.stringify({ model: 'tiny', messages, stream: true, logit_bias: { 112: 100 } }),
  })
  let said = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    if (said === '') process.kill(llm.loaded()[0]?.processId as number, 'SIGKILL')
    said += Buffer.from(bytes).toString()
  }
  expect(said).toContain('"error"')
  errors.push(said)
  expect(await call(good[0] as Call, { 'x-api-key': secret })).toBe(200)
}

/** What it says of keys; a new key is said once. */
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
