/** Starts the server as `npm start` does, and ends it with SIGTERM. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
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

test('SIGTERM ends the server', async () => {
  const exit = once(server, 'exit')
  const response = await fetch(`${url}/time`)

  server.kill('SIGTERM')

  expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('29')
  expect(await exit).toEqual([0, null])
})
