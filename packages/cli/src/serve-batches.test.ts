/** `modelmount serve` with batches, in processes that a user starts and stops. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createLlm, type KeyWithSecret } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { noiseModel } from '../../../test/support/models.ts'

const bin = fileURLToPath(new URL('../bin/modelmount.js', import.meta.url))
let models: string

beforeEach(() => {
  models = emptyFolder()
})

const environment = (more: NodeJS.ProcessEnv = {}) => ({
  ...process.env,
  OLLAMA_HOST: '',
  OLLAMA_MODELS: models,
  ...more,
})

async function serve(...args: readonly string[]) {
  const child = spawn(process.execPath, [bin, 'serve', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment(),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const log = text(child.stderr)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    url: String(line).replace('Listening on ', ''),
    stop: async (): Promise<string> => {
      child.kill('SIGTERM')
      await once(child, 'exit')
      return log
    },
  }
}

async function run(url: string, args: readonly string[], input = '', key = '') {
  const child = spawn(process.execPath, [bin, ...args, '--host', url], {
    env: environment({ MODELMOUNT_API_KEY: key }),
  })
  child.stdin.end(input)
  const closed = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: ((await closed) as [number])[0], stdout, stderr }
}

const requests = (count: number): string =>
  Array.from(
    { length: count },
    (_, number) =>
      `${JSON.stringify({
        custom_id: `item-${number}`,
        params: { model: 'tiny', max_tokens: 12, messages: [{ role: 'user', content: `Hello ${number}` }] },
      })}\n`,
  ).join('')

test('a server without keys opens a database with its first batch, and finishes the batch after a restart', async () => {
  const database = join(models, 'modelmount.db')
  const first = await serve()
  await fetch(`${first.url}/v1/models`)
  expect(existsSync(database)).toBe(false)

  const { stdout } = await run(first.url, ['batch', 'submit', '-'], requests(60))
  expect(existsSync(database)).toBe(true)
  await first.stop()
  expect(await statusIn(database, stdout.trim())).toBe('in_progress')

  const second = await serve()
  const waited = await run(second.url, ['batch', 'status', stdout.trim(), '--wait', '--json'])
  expect(JSON.parse(waited.stdout)).toMatchObject({ isEnded: true, total: 60, outcomes: { succeeded: 60 } })
  const { stdout: results } = await run(second.url, ['batch', 'results', stdout.trim()])
  expect(results.trimEnd().split('\n')).toHaveLength(60)
}, 60_000)

async function statusIn(database: string, id: string): Promise<string> {
  const llm = await createLlm({ engine: scriptedEngine(''), models: [], batches: { database, run: false } })
  const { status } = await llm.batches.get(id)
  await llm.close()
  return status
}

test('--data and --models name the folder of the database', async () => {
  for (const flag of ['--data', '--models']) {
    const folder = emptyFolder()
    const { url } = await serve(flag, folder)

    expect(await run(url, ['batch', 'submit', '-'], requests(1))).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(join(folder, 'modelmount.db'))).toBe(true)
  }
  expect(existsSync(join(models, 'modelmount.db'))).toBe(false)
})

test('a server with one file has no folder, and its errors name the flag', async () => {
  const server = await serve('--model', noiseModel)

  const { code, stderr } = await run(server.url, ['batch', 'submit', '-'], requests(1))

  expect([code, stderr]).toEqual([1, expect.stringContaining('`database` (--data)')])
  expect(await server.stop()).toContain('`database` (--data)')
  expect(existsSync(join(models, 'modelmount.db'))).toBe(false)
})

test('with --auth keys, batches belong to the key', async () => {
  const { url } = await serve('--auth', 'keys')
  const createKey = async (name: string) => {
    const child = spawn(process.execPath, [bin, 'keys', 'create', name, '--json'], { env: environment() })
    return (JSON.parse(await text(child.stdout)) as KeyWithSecret).secret
  }
  const [own, other] = [await createKey('own'), await createKey('other')]

  const denied = await run(url, ['batch', 'submit', '-'], requests(1))
  const { stdout } = await run(url, ['batch', 'submit', '-', '--wait'], requests(1), own)
  const foreign = await run(url, ['batch', 'status', stdout.trim()], '', other)

  expect(denied.stderr).toMatch(/^Error: .*On the command line, set \$MODELMOUNT_API_KEY\.\n$/)
  expect(stdout).toMatch(/^msgbatch_/)
  expect(foreign).toMatchObject({ code: 1, stderr: 'Error: Batch not found.\n' })
})
