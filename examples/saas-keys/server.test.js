/** Starts the server as `npm start` does, and ends it with SIGTERM. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'

const JWT_SECRET = 'only-for-this-test'.repeat(2)
let data
let server
let url

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'saas-'))
  server = spawn(process.execPath, ['server.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0', DATA: data, JWT_SECRET },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = line.replace('Listening on ', '')
}, 30_000)

afterAll(async () => {
  server.kill('SIGKILL')
  await rm(data, { recursive: true })
})

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const token = execFileSync(process.execPath, ['create-token.js', 'acme', 'team'], {
    cwd: import.meta.dirname,
    env: { ...process.env, JWT_SECRET },
    encoding: 'utf8',
  })
  const created = await fetch(`${url}/account/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
    body: '{ "name": "laptop" }',
  })
  const { secret } = await created.json()
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

  server.kill('SIGTERM')

  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([0, null])
}, 30_000)
