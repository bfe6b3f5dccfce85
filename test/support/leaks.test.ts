/** The leak check finds leaked secrets and prompts in files, databases, logs and printed text. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createSecret } from '../../packages/core/src/accounts/keys/secret.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { expectNoLeaksIn } from './databases.ts'
import { LeakReporter } from './leak-reporter.ts'
import { expectNoLeaks, leaksIn, leaksUnder, promptCanary } from './leaks.ts'
import { hasPostgres, startPostgres } from './postgres.ts'
import { runLog } from './run-log.ts'

const { secret, hint, publicId } = createSecret()

test('a complete secret and the canary of a prompt are leaks, the hint of a key is not', () => {
  expect(leaksIn(`a ${secret}, ${promptCanary} b`)).toHaveLength(2)
  expect(leaksIn(`${hint} ${publicId} ${secret.slice(0, -1)}`)).toEqual([])
  expect(leaksIn(leaksIn(secret).join())).toEqual([])
})

describe('leak check of a folder', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leaks-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('finds a secret in a log file', () => {
    writeFileSync(join(folder, 'clean.log'), hint)
    expect(() => expectNoLeaks(folder)).not.toThrow()

    writeFileSync(join(folder, 'model.log'), `reading ${secret}`)
    expect(() => expectNoLeaks(folder)).toThrow('model.log')
  })

  test('finds a secret in a row of SQLite, while the database is open and after it is closed', async () => {
    const database = await openDatabase(join(folder, 'some.db'))
    await database.query('CREATE TABLE kept (words TEXT)')
    await database.query('INSERT INTO kept VALUES (?)', [secret])

    expect(leaksUnder(folder)).toContainEqual(expect.stringContaining('some.db'))
    await database.close()
    expect(leaksUnder(folder)).toContainEqual(expect.stringContaining('some.db'))
  })

  test('finds a secret in a logged error, even in its cause', () => {
    const before = process.env.XDG_RUNTIME_DIR
    process.env.XDG_RUNTIME_DIR = folder
    onTestFinished(() => {
      process.env.XDG_RUNTIME_DIR = before
    })

    runLog.error({ error: new Error('It failed', { cause: { parameters: [secret] } }) }, 'Failed')

    expect(leaksUnder(folder)).toEqual([expect.stringContaining('tests.log')])
  })
})

test.runIf(hasPostgres)(
  'the canary of a prompt in a row of PostgreSQL is found before and after its end',
  async () => {
    const running = await startPostgres()
    const client = new pg.Client({ connectionString: running.url })
    await client.connect()
    await client.query('CREATE TABLE kept (words TEXT)')
    await expectNoLeaksIn(client, ['postgres'])
    await client.query('INSERT INTO kept VALUES ($1)', [promptCanary])

    await expect(expectNoLeaksIn(client, ['postgres'])).rejects.toThrow('A secret or a prompt was written')
    await client.end()
    await expect(running.stop()).rejects.toThrow('A secret or a prompt was written')
  },
)

test('the reporter finds a secret that is printed in two chunks, and fails the run', () => {
  const { exitCode } = process
  onTestFinished(() => {
    process.exitCode = exitCode
  })
  const printed: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      printed.push(String(chunk))
      done()
    },
  }) as NodeJS.WriteStream
  const reporter = new LeakReporter([stream])
  reporter.onInit()

  stream.write('nothing')
  reporter.onTestRunEnd()
  expect(process.exitCode).toBe(exitCode)
  stream.write(`a key: ${secret.slice(0, 30)}`)
  stream.write(Buffer.from(secret.slice(30)))
  reporter.onTestRunEnd()

  expect(process.exitCode).toBe(1)
  expect(printed.at(-1)).toContain('A secret or a prompt was printed: sk-mm-')
})
