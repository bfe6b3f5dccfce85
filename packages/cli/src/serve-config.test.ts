/** `modelmount serve` with a configuration file, SIGHUP and a PostgreSQL URL, in processes that a user starts. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { KeyWithSecret } from '@modelmount/core'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { databases } from '../../../test/support/databases.ts'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { until } from '../../../test/support/processes.ts'
import { hasTerminal, inTerminal } from '../../../test/support/terminal.ts'

const bin = fileURLToPath(new URL('../bin/modelmount.js', import.meta.url))
let folder: string
let file: string

beforeEach(() => {
  folder = emptyFolder()
  file = join(folder, 'modelmount.json')
})

const environment = { ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: '', OLLAMA_ORIGINS: '' }
const config = (options: object): void => writeFileSync(file, JSON.stringify(options))

async function serve(...args: readonly string[]) {
  const child = spawn(process.execPath, [bin, 'serve', '--port', '0', ...args], { env: environment })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.on('data', (text) => {
    stderr += text
  })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    url: String(line).replace('Listening on ', ''),
    /** Sends SIGHUP, and waits for the last line of what the server then logs. */
    reread: async (last: string): Promise<string> => {
      stderr = ''
      child.kill('SIGHUP')
      await until(() => stderr.includes(last) && stderr.endsWith('\n'), 10_000).catch(() => {
        throw new Error(`Expected ${JSON.stringify(last)} in ${JSON.stringify(stderr)}`)
      })
      return stderr
    },
  }
}

const modelmount = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [bin, ...args], { env: environment })).stdout

const createKey = async (...args: readonly string[]): Promise<KeyWithSecret> =>
  JSON.parse(await modelmount('keys', 'create', 'laptop', '--json', ...args)) as KeyWithSecret

const ask = async (url: string, secret: string): Promise<number> => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ model: 'tiny', max_tokens: 2, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.text()
  return response.status
}

test('SIGHUP changes prices and tiers, and a broken file changes nothing', async () => {
  const options = { models: [emptyFolder()], database: 'modelmount.db', auth: 'keys' }
  const prices = (usd: number) => ({ '*': { inputPerMillionUsd: 0, outputPerMillionUsd: usd } })
  config({ ...options, prices: prices(1), tiers: { free: { requestsPerMinute: 1 } } })
  const { url, reread } = await serve('--config', file)
  const { secret } = await createKey('--tier', 'free', '--data', folder)
  expect([await ask(url, secret), await ask(url, secret)]).toEqual([200, 429])

  config({ ...options, prices: prices(10), tiers: { free: { requestsPerMinute: 1_000 } }, maxQueued: 7 })
  expect(await reread('`maxQueued`')).toBe(
    `modelmount: Reread ${file}: changed prices and tiers.\n` +
      `modelmount: \`maxQueued\` in ${file} changes at the next start. Only prices, tiers and aliases change while serving.\n`,
  )
  expect(await ask(url, secret)).toBe(200)

  writeFileSync(file, '{ "tiers": ')
  expect(await reread('kept')).toContain(`kept the earlier settings. --config: ${file} cannot be read: `)
  config({ ...options, teirs: {} })
  expect(await reread('kept')).toContain(`kept the earlier settings. ${file}: Unknown option \`teirs\``)
  expect(await ask(url, secret)).toBe(200)
  // Two output tokens each: one call at the old price, two at the new one.
  const [{ nanoUsd }] = JSON.parse(await modelmount('usage', '--json', '--data', folder)) as [
    { nanoUsd: string },
  ]
  expect(nanoUsd).toBe('42000')
})

test('SIGHUP changes aliases', async () => {
  const idsOf = async (url: string) => {
    const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] }
    return data.map(({ id }) => id)
  }
  const options = { models: [emptyFolder()] }
  config({ ...options, aliases: { 'gpt-5': 'tiny' } })
  const { url, reread } = await serve('--config', file)
  expect(await idsOf(url)).toEqual(['tiny:latest', 'gpt-5'])

  config({ ...options, aliases: { 'claude-local': 'tiny', 'claude-*': 'tiny' } })

  expect(await reread('changed')).toBe(`modelmount: Reread ${file}: changed aliases.\n`)
  expect(await idsOf(url)).toEqual(['tiny:latest', 'claude-local'])
})

test('SIGHUP rereads the file of --prices, too', async () => {
  writeFileSync(file, '{}')
  const { reread } = await serve('--prices', file, '--data', folder)

  writeFileSync(file, '{ "tiny": { "inputPerMillionUsd": 1, "outputPerMillionUsd": 1 } }')

  expect(await reread('changed')).toBe(`modelmount: Reread ${file}: changed prices.\n`)
})

test.each([
  ['{ "prots": 1 }', 'Unknown option `prots`, expected one of: models, '],
  ['{ "local": { "threads": 0 } }', 'Expected `local.threads` (--threads) to be a whole number from 1 to '],
  ['{ "bodies": { "maxBytes": 5 } }', 'Expected `bodies.maxBytes` (--config) to be from '],
])('the file %s ends the start with an error that names it', async (text, message) => {
  writeFileSync(file, text)

  await expect(modelmount('serve', '--port', '0', '--config', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`Error: ${file}: ${message}`),
  })
})

test('--origins lets pages of other origins call the server', async () => {
  const { url } = await serve('--origins', 'https://app.example.com,https://*.example.org')
  const statusFrom = async (origin: string) =>
    (await fetch(`${url}/v1/models`, { headers: { origin, 'sec-fetch-site': 'cross-site' } })).status

  expect(await statusFrom('https://app.example.com')).toBe(200)
  expect(await statusFrom('https://a.example.org')).toBe(200)
  expect(await statusFrom('http://localhost:5173')).toBe(200)
  expect(await statusFrom('https://example.net')).toBe(403)
})

test.skipIf(!hasTerminal)('a server with a configuration file ends when its terminal closes', async () => {
  config({})
  const terminal = inTerminal([process.execPath, bin, 'serve', '--port', '0', '--config', file], environment)
  await terminal.shows('Listening on ')
  await terminal.shows('\n')
  const [, url = ''] = /Listening on (\S+)/.exec(terminal.text()) ?? []

  terminal.kill('SIGKILL')

  await vi.waitFor(() => expect(fetch(url)).rejects.toThrow('fetch failed'), { timeout: 10_000 })
})

test('a database that does not answer is an error that names the flag', async () => {
  await expect(modelmount('keys', 'list', '--data', 'postgres://127.0.0.1:1/app')).rejects.toMatchObject({
    code: 1,
    stderr:
      'Error: --data: The database cannot be reached (ECONNREFUSED). Check the URL, and whether it runs.\n',
  })
})

describe.each(databases().filter(({ name }) => name === 'PostgreSQL'))('in $name', ({ fresh }) => {
  test('serve and the commands for keys, usage and the database share the URL of --data', async () => {
    const data = await fresh()
    const { key, secret } = await createKey('--data', data)
    const { url } = await serve('--auth', 'keys', '--data', data)

    expect([await ask(url, secret), await ask(url, 'sk-wrong')]).toEqual([200, 401])
    expect(JSON.parse(await modelmount('usage', '--json', '--data', data))).toMatchObject([
      { group: key.id, calls: 1 },
    ])
    expect(await modelmount('keys', 'list', '--data', data)).toContain(key.id)
    expect(await modelmount('db', 'check', '--data', data)).toContain('No problems found.')
    expect(existsSync('postgres:')).toBe(false)
  })
})
