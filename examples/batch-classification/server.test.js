/** Starts the server as `npm start` does, and ends it with SIGTERM. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'

let data
let server
let url

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'batches-'))
  server = spawn(process.execPath, ['server.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0', DATA: data },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = line.replace('Listening on ', '')
}, 30_000)

afterAll(async () => {
  server.kill('SIGKILL')
  await rm(data, { recursive: true })
})

test('SIGTERM ends the server when its running answers have ended, also during a job', async () => {
  const exit = once(server, 'exit')
  const job = await fetch(`${url}/jobs`, { method: 'POST' })
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

  server.kill('SIGTERM')

  expect(job.status).toBe(202)
  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([0, null])
}, 30_000)
