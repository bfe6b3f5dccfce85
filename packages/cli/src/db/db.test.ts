import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createLlm, type KeyWithSecret } from '@modelmount/core'
import type { DatabaseCheck } from '@modelmount/core/database'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { openDatabase } from '../../../core/src/storage/open.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
const root = fileURLToPath(new URL('../../../..', import.meta.url))
let folder: string
let data: string
let database: string

beforeEach(() => {
  folder = emptyFolder()
  data = join(folder, 'data')
  database = join(data, 'modelmount.db')
})

const environment = () => ({ ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: emptyFolder() })

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const node = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, args, { env: environment(), cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })

const modelmount = (...args: readonly string[]): Promise<Ended> => node(bin, ...args)

async function createKey(name: string): Promise<KeyWithSecret> {
  return JSON.parse((await modelmount('keys', 'create', name, '--data', data, '--json')).stdout)
}

async function serve() {
  const child = spawn(process.execPath, [bin, 'serve', '--port', '0', '--auth', 'keys', '--data', data], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment(),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    statusFor: async (secret: string) =>
      (
        await fetch(`${String(line).replace('Listening on ', '')}/v1/models`, {
          headers: { 'x-api-key': secret },
        })
      ).status,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

const insertStep = async (location: string): Promise<void> => {
  const opened = await openDatabase(location)
  await opened.query("INSERT INTO modelmount_migrations VALUES ('usage', 99, 'of the future', 0)")
  await opened.close()
}

test('`db backup` copies the database of a running server into a private file', async () => {
  const { secret } = await createKey('laptop')
  const { statusFor } = await serve()
  expect(await statusFor(secret)).toBe(200)
  const file = join(folder, 'backup.db')

  const backup = await modelmount('db', 'backup', file, '--data', data)

  expect(backup).toMatchObject({ code: 0, stderr: '' })
  expect(backup.stdout).toMatch(/^Backed up .*modelmount\.db to .*backup\.db \(\d+ KB\)\.\n$/)
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  expect(await statusFor(secret)).toBe(200)
  const check = await modelmount('db', 'check', '--database', file)
  expect(check).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('No problems found.') })
})

test('`db backup` replaces a file only with --force', async () => {
  await createKey('laptop')
  const file = join(folder, 'backup.db')
  writeFileSync(file, 'precious')

  expect(await modelmount('db', 'backup', file, '--data', data)).toMatchObject({
    code: 1,
    stderr: `Error: ${file} exists. Name another file, or allow it to be replaced: --force.\n`,
  })
  expect(readFileSync(file, 'utf8')).toBe('precious')
  expect(await modelmount('db', 'backup', file, '--data', data, '--force')).toMatchObject({ code: 0 })
  expect(readFileSync(file, 'utf8')).toMatch(/^SQLite format 3/)
})

test('`db check` ends with 0 without problems, with 2 if there are some, and with 1 if it cannot check', async () => {
  await createKey('laptop')
  const sound = await modelmount('db', 'check', '--data', data, '--json')
  expect([sound.code, (JSON.parse(sound.stdout) as DatabaseCheck).problems]).toEqual([0, []])

  writeFileSync(join(folder, 'text.db'), 'no database '.repeat(1_000))
  expect(await modelmount('db', 'check', '--database', join(folder, 'text.db'))).toMatchObject({
    code: 2,
    stdout: expect.stringContaining('Problem: The file is damaged: file is not a database.\nProblems: 1\n'),
  })

  const none = join(folder, 'none')
  expect(await modelmount('db', 'check', '--data', none)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No database found at'),
  })
  expect(existsSync(none)).toBe(false)
})

test.each([['serve', '--port', '0', '--auth', 'keys'], ['keys', 'list'], ['usage']])(
  '%s refuses a database of a newer version, and names both versions',
  async (...command) => {
    await createKey('laptop')
    await insertStep(database)

    expect(await modelmount(...command, '--data', data)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^Error: The database is too new: its usage tables have schema version 99, and .* up to \d+\. Start .*\n$/,
      ),
    })
  },
)

test('a database of a newer version can be backed up, and `db check` names both versions', async () => {
  await createKey('laptop')
  await insertStep(database)

  expect(await modelmount('db', 'backup', join(folder, 'backup.db'), '--data', data)).toMatchObject({
    code: 0,
  })
  expect(await modelmount('db', 'check', '--data', data)).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^Tables of usage: version 99, but only \d+ is supported$/m),
  })
})

describe.each(databases().filter(({ name }) => name === 'PostgreSQL'))('in $name', ({ fresh }) => {
  test('`db check` works, and `db backup` names pg_dump', async () => {
    const location = await fresh()

    expect(await modelmount('db', 'check', '--database', location)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('Problem: The database contains no tables of Modelmount.'),
    })
    expect(await modelmount('db', 'backup', join(folder, 'backup.db'), '--database', location)).toMatchObject(
      {
        code: 1,
        stderr: expect.stringContaining('pg_dump --format=custom'),
      },
    )
    expect(existsSync(join(folder, 'backup.db'))).toBe(false)
  })

  test('the statement of the docs drops all tables, also those of a newer version, before a restore', async () => {
    const location = await fresh()
    const start = async () => (await createLlm({ auth: 'keys', models: folder, database: location })).close()
    await start()
    const opened = await openDatabase(location)
    await opened.query('CREATE TABLE modelmount_table_of_a_newer_version (id TEXT)')
    await opened.query('CREATE TABLE notes_of_the_app (id TEXT)')

    await opened.query(blockOf('Restore', 'sql'))

    expect(await opened.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([
      { tablename: 'notes_of_the_app' },
    ])
    await opened.close()
    await start()
  })
})

/** The first block of code of this language in the section of the page. */
function blockOf(section: string, language: string): string {
  const page = readFileSync(join(root, 'docs/operations/backup.md'), 'utf8')
  const text = page.slice(page.indexOf(`## ${section}\n`))
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(text)?.[1] ?? ''
}

test.each([['usage'], ['keys', 'list']])(
  '`modelmount %s %s` does not upgrade an older database',
  async (...command) => {
    await createKey('any')
    const opened = await openDatabase(database)
    onTestFinished(() => opened.close())
    await opened.query("DELETE FROM modelmount_migrations WHERE owner = 'usage'")

    const { code, stderr } = await modelmount(...command.filter(Boolean), '--data', data)

    expect(code).toBe(1)
    expect(stderr).toContain('its usage tables have schema version 0')
    expect(await opened.query("SELECT 1 FROM modelmount_migrations WHERE owner = 'usage'")).toEqual([])
  },
)

test('a restored backup revives a revoked key, until the script of the docs revokes it again', async () => {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const [laptop, phone] = [await createKey('laptop'), await createKey('phone')]
  // More keys than a page of a list has.
  const opened = await openDatabase(database)
  await opened.query(
    `INSERT INTO modelmount_keys (id, name, hint, granted, created_at)
     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
     SELECT 'key_' || i, 'newer', '', '{"scopes":["inference"]}', ? FROM n`,
    [Date.now() + 60_000],
  )
  await opened.close()
  await modelmount('db', 'backup', join(folder, 'backup.db'), '--data', data)
  await modelmount('keys', 'revoke', laptop.key.id, '--data', data)
  const before = await serve()
  expect([await before.statusFor(laptop.secret), await before.statusFor(phone.secret)]).toEqual([401, 200])
  await before.stop()

  // The steps of the page.
  const replaced = join(data, 'replaced.db')
  await modelmount('db', 'backup', replaced, '--data', data)
  for (const suffix of ['', '-wal', '-shm']) rmSync(database + suffix, { force: true })
  copyFileSync(join(folder, 'backup.db'), database)
  const revived = await serve()
  expect([await revived.statusFor(laptop.secret), await revived.statusFor(phone.secret)]).toEqual([200, 200])
  await revived.stop()
  writeFileSync(join(folder, 'revoke-again.mjs'), blockOf('What a restored backup revives', 'js'))
  expect(await node('revoke-again.mjs')).toMatchObject({ code: 0, stderr: '' })

  const after = await serve()
  expect([await after.statusFor(laptop.secret), await after.statusFor(phone.secret)]).toEqual([401, 200])
})
