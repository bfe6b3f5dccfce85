/** `modelmount top` beside a server with the built-in model, as a user runs both. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { noiseModel } from '../../../../test/support/models.ts'
import { hasTerminal, inTerminal } from '../../../../test/support/terminal.ts'
import type { ServedActivity } from './read-activity.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
const env = { ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: '' }
const server = spawn(process.execPath, [bin, 'serve', '--port', '0', '--model', noiseModel], {
  stdio: ['ignore', 'pipe', 'ignore'],
  env,
})
let url: string
let answer: AsyncIterator<unknown>

beforeAll(async () => {
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  url = String(line).replace('Listening on ', '')
  // An answer that is not read pauses, and so runs as long as the tests.
  const { body } = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      ...{ model: 'tiny-llama-spm.f16', stream: true, max_tokens: 100_000 },
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
  answer = (body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]()
  await answer.next()
  // The model process reports what it does once per second.
  const hasReported = async (): Promise<void> => {
    const { models } = (await (await fetch(`${url}/admin/activity`)).json()) as ServedActivity
    expect(models[0]?.activity?.activeSequences).toBe(1)
  }
  await vi.waitFor(hasReported, { timeout: 10_000 })
})

afterAll(async () => {
  const ended = once(server, 'exit')
  server.kill('SIGKILL')
  await ended
})

test('in a pipe, it prints the calls and the models once, without a setup', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [bin, 'top', '--host', url], {
    env,
    encoding: 'utf8',
  })

  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+ {2}1 call, 0 in queues/)
  expect(stdout).toMatch(/tiny-llama-spm\.f16:latest +CPU +1 +0 +0 +\d+ MB/)
  expect(stdout).toMatch(/tiny-llama-spm\.f16:latest +decoding +[\d.]+m?s/)
  expect(stdout).not.toContain('\u001b')
})

test('with --json, it prints what the route returns', () => {
  const { stdout } = spawnSync(process.execPath, [bin, 'top', '--json', '--host', url], {
    env,
    encoding: 'utf8',
  })

  expect(JSON.parse(stdout)).toMatchObject({ callCount: 1, calls: [{ phase: 'decoding' }] })
})

test.skipIf(!hasTerminal)('in a terminal, it draws again until q', async () => {
  const terminal = inTerminal([process.execPath, bin, 'top', '--host', url], env)

  await terminal.shows('MODEL')
  await terminal.shows('MODEL')
  terminal.type('q')

  expect(await terminal.exit).toBe(0)
  expect(terminal.raw()).toMatch(/\[\?1049l\s*$/)
})

test('a server without the route is named', async () => {
  const { createServer } = await import('node:http')
  const other = createServer((_req, res) => void res.writeHead(404).end()).listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as { readonly port: number }
  const child = spawn(process.execPath, [bin, 'top', '--host', `127.0.0.1:${port}`], { env })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const [code] = await once(child, 'close')
  other.close()

  expect(code).toBe(1)
  expect(stderr).toContain('has no route /admin/activity')
})
