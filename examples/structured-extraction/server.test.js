/** Starts the server as `npm start` does, and ends it with SIGTERM. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server
let url

beforeAll(async () => {
  server = spawn(process.execPath, ['server.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = line.replace('Listening on ', '')
}, 30_000)

afterAll(() => void server.kill('SIGKILL'))

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const body = JSON.stringify({ text: 'Ada orders three lamps.' })
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    expect: '100-continue',
  }
  const post = request(`${url}/orders`, { method: 'POST', headers })
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
