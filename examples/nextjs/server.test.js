/** Builds the app with Next.js, starts it as `npm start` does, and ends it with SIGTERM during an answer. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'

const next = `${import.meta.dirname}/node_modules/next/dist/bin/next`
const { NODE_ENV: _ofVitest, ...environment } = process.env // Next.js sets it.
const options = { cwd: import.meta.dirname, env: { ...environment, NEXT_TELEMETRY_DISABLED: '1' } }
const headers = { cookie: 'session=ada' }
let server
let url

beforeAll(async () => {
  execFileSync(process.execPath, [next, 'build'], { ...options, stdio: ['ignore', 'ignore', 'inherit'] })
  server = spawn(process.execPath, ['server.js'], {
    ...options,
    env: { ...options.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  url = await new Promise((resolve) => {
    createInterface({ input: server.stdout }).on('line', (line) => {
      if (line.startsWith('Listening on ')) resolve(line.replace('Listening on ', ''))
    })
  })
}, 120_000)

afterAll(() => void server.kill('SIGKILL'))

test('the page and the routes answer', async () => {
  const page = await (await fetch(url)).text()
  const models = await (await fetch(`${url}/llm/v1/models`, { headers })).json()

  expect(page).toContain('Tell me a story')
  expect(models.data.map(({ id }) => id)).toContain('tiny:latest')
  expect((await fetch(`${url}/llm/v1/models`)).status).toBe(401)
}, 30_000)

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

  server.kill('SIGTERM')

  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([0, null])
}, 60_000)
