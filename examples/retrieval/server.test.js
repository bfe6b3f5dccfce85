/** Starts the server as `npm start` does, and ends it with SIGTERM. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeModels } from './random-models.js'

let folder
let server
let url

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retrieval-'))
  const { embed, rerank } = writeModels(folder)
  const models = { OLLAMA_MODELS: folder, EMBED_MODEL: embed, RERANK_MODEL: rerank }
  server = spawn(process.execPath, ['server.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0', ...models },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = line.replace('Listening on ', '')
}, 30_000)

afterAll(async () => {
  server.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const body = JSON.stringify({ question: 'When is the shop open?' })
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    expect: '100-continue',
  }
  const post = request(`${url}/answers`, { method: 'POST', headers })
  post.flushHeaders()
  await once(post, 'continue') // The server has the request.
  post.end(body)

  server.kill('SIGTERM')

  const [response] = await once(post, 'response')
  response.resume()
  // The signal may come before the call begins: an answer is complete or refused, but never cut off.
  expect([200, 503]).toContain(response.statusCode)
  expect(await exit).toEqual([0, null])
}, 30_000)
