/** Builds and starts the server as `npm start` does, and ends it with SIGTERM. */
import { execSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server
let url

beforeAll(async () => {
  execSync('npm run build', { cwd: import.meta.dirname })
  server = spawn(process.execPath, ['dist/main.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = line.replace('Listening on ', '')
}, 120_000)

afterAll(() => void server.kill('SIGKILL'))

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

  server.kill('SIGTERM')

  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([null, 'SIGTERM']) // Nest ends the process with the signal.
}, 30_000)
