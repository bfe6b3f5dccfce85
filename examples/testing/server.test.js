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

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
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
