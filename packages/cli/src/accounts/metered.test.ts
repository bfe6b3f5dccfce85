import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import '../../../../test/support/own-run-folder.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
const data = emptyFolder()
const models = emptyFolder()
const started: ChildProcess[] = []
afterAll(() => {
  for (const command of started) command.kill('SIGKILL')
})

function start(...args: readonly string[]): ChildProcess & { stdout: NodeJS.ReadableStream } {
  const child = spawn(process.execPath, [bin, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: '' },
  })
  started.push(child)
  return child as ChildProcess & { stdout: NodeJS.ReadableStream }
}

async function runToEnd(...args: readonly string[]): Promise<string> {
  const command = start(...args)
  let output = ''
  command.stdout.on('data', (chunk) => {
    output += chunk
  })
  expect(await once(command, 'close')).toEqual([0, null])
  return output
}

test('records tokens and cost of a key, and enforces its spending limit', async () => {
  const prices = join(data, 'prices.json')
  writeFileSync(prices, '{"tiny": {"inputPerMillionUsd": 1, "outputPerMillionUsd": 2}}')
  const keyed = ['keys', 'create', 'reports', '--spend', '0.0002', '--per', 'day', '--data', data, '--json']
  const { key, secret } = JSON.parse(await runToEnd(...keyed)) as { key: { id: string }; secret: string }
  const server = start(
    ...['serve', '--port', '0', '--models', models, '--auth', 'keys', '--data', data, '--prices', prices],
  )
  const url = await urlOf(server)
  const ask = (max_tokens: number) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], max_tokens }),
    })

  const answer = await ask(8)
  const { usage } = (await answer.json()) as { usage: Record<'prompt_tokens' | 'completion_tokens', number> }
  const refused = await ask(1_000)

  expect([answer.status, refused.status]).toEqual([200, 429])
  const [row] = JSON.parse(await runToEnd('usage', '--data', data, '--json')) as readonly object[]
  expect(row).toMatchObject({
    group: key.id,
    name: 'reports',
    calls: 1,
    nanoUsd: `${usage.prompt_tokens * 1_000 + usage.completion_tokens * 2_000}`,
  })
  expect(await runToEnd('usage', '--data', data, '--by', 'model')).toContain('tiny:latest')
})

/** Returns the URL that a server prints at its start. */
async function urlOf(server: { readonly stdout: NodeJS.ReadableStream }): Promise<string> {
  const [line] = await once(createInterface({ input: server.stdout }), 'line')
  return String(line).replace('Listening on ', '')
}

test('with --admin, a key with the scope admin creates keys over HTTP; without it, none does', async () => {
  const json = await runToEnd('keys', 'create', 'root', '--scopes', 'admin', '--data', data, '--json')
  const { secret } = JSON.parse(json) as { secret: string }
  const served = ['serve', '--port', '0', '--models', models, '--auth', 'keys', '--data', data]
  const [plain, managed] = await Promise.all([urlOf(start(...served)), urlOf(start(...served, '--admin'))])
  const create = (url: string, key: string) =>
    fetch(`${url}/admin/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: '{"name":"made"}',
    })

  expect((await create(plain, secret)).status).toBe(404)
  expect((await create(managed, 'wrong')).status).toBe(401)
  const answer = await create(managed, secret)
  expect(answer.status).toBe(201)
  const { secret: other } = (await answer.json()) as { secret: string }
  expect((await create(managed, other)).status).toBe(403)
  expect(await runToEnd('keys', 'list', '--data', data)).toContain('made')
})

test('--admin without --auth keys is an error', async () => {
  const command = spawn(process.execPath, [bin, 'serve', '--port', '0', '--models', models, '--admin'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(command)
  let stderr = ''
  command.stderr.on('data', (chunk) => {
    stderr += chunk
  })

  expect(await once(command, 'close')).toEqual([1, null])
  expect(stderr).toContain('Add --auth keys')
})
