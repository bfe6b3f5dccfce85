/** A deleted or replaced database file went unnoticed, and the app wrote to a file that no process could open. */
import { existsSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm, type Llm, type Logger } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { chats, post } from '../../support/served.ts'

const folder = emptyFolder()
const unavailable = { code: 'unavailable', details: { retryAfterMs: 1_000 } }

let path: string
let llm: Llm
/** Messages of the log, and those of the logged errors. */
let logged: string[]
let count = 0

beforeEach(async () => {
  path = join(folder, `${++count}.db`)
  logged = []
  const log = (details: object, message: string) => {
    const { err } = details as { err?: Error & { cause?: Error } }
    logged.push([message, err?.message, err?.cause?.message].join(' '))
  }
  llm = await open({ warn: log, error: log })
  onTestFinished(() => llm.close())
})

const open = (logger: Logger) =>
  createLlm({ engine: scriptedEngine('Hello there.'), models: folder, auth: 'keys', database: path, logger })
const createKey = (name: string) => llm.keys.create({ name, scopes: ['admin', 'inference'] })
const authenticate = (secret: string) =>
  llm.apiKeyGenerator({ headers: { authorization: `Bearer ${secret}` } })
const remove = (...suffixes: string[]) => {
  for (const suffix of suffixes) rmSync(path + suffix)
}
/** A copy of the database as it is now. */
const backUp = async (): Promise<string> => {
  const copy = `${path}.backup`
  const database = await openDatabase(path)
  await database.query('VACUUM INTO ?', [copy])
  await database.close()
  return copy
}
/** Names of the keys in the file that has the path now. */
const storedNames = async () => {
  const database = await openDatabase(path)
  const rows = await database.query<{ name: string }>('SELECT name FROM modelmount_keys ORDER BY name')
  await database.close()
  return rows.map(({ name }) => name)
}

test('with a deleted file, every API responds with 503, retry-after and its own error, and logs the path', async () => {
  const { url, close } = await listen(express().use('/admin', adminRouter(llm)).use(llmRouter(llm)))
  onTestFinished(close)
  const { secret } = await createKey('app')
  const headers = { authorization: `Bearer ${secret}` }
  remove('')

  const responses = await Promise.all([
    ...chats.map(({ path, body }) => post(url + path, body, headers)),
    fetch(`${url}/admin/keys`, { headers }),
  ])

  expect(responses.map(({ status }) => status)).toEqual([503, 503, 503, 503])
  expect(responses.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1', '1'])
  const message = 'The database is unavailable. Try again in 1 s.'
  expect(await Promise.all(responses.map((response) => response.json()))).toMatchObject([
    { error: { message, type: 'server_error', code: 'service_unavailable' } },
    { type: 'error', error: { type: 'api_error', message } },
    { error: message },
    { error: { code: 'unavailable', message } },
  ])
  expect(logged.join('\n')).toContain(`The database file ${path} is missing or cannot be read.`)
  expect(existsSync(path)).toBe(false)
})

test('a file that was moved away and back is used again', async () => {
  const { secret } = await createKey('app')
  renameSync(path, `${path}.away`)
  await expect(createKey('lost')).rejects.toMatchObject(unavailable)

  renameSync(`${path}.away`, path)

  expect(await authenticate(secret)).toMatchObject({ id: expect.any(String) })
  await createKey('back')
  expect(await storedNames()).toEqual(['app', 'back'])
  expect(logged.at(-1)).toContain('The database is available again')
})

describe('a file with the place of another', () => {
  test('is opened, and gets what is written from then on', async () => {
    const { secret } = await createKey('app')
    const copy = await backUp()
    const later = await createKey('later')
    remove('', '-wal', '-shm')
    renameSync(copy, path)

    await createKey('new')

    expect(await storedNames()).toEqual(['app', 'new'])
    await authenticate(secret)
    await expect(authenticate(later.secret)).rejects.toMatchObject({ code: 'authentication' })
    expect(logged.join('\n')).toContain(`The database file ${path} was replaced.`)
  })

  test('is not opened with the -wal file of the other', async () => {
    await createKey('app')
    const copy = await backUp()
    await createKey('later')
    renameSync(copy, path)

    await expect(createKey('lost')).rejects.toMatchObject(unavailable)
    expect(logged.join('\n')).toContain(`Move ${path}-wal and ${path}-shm away.`)

    remove('-wal', '-shm')
    await createKey('new')
    expect(await storedNames()).toEqual(['app', 'new'])
  })

  test('is not opened with the -wal file of the other, by a thread that starts meanwhile', async () => {
    await createKey('app')
    const copy = await backUp()
    await createKey('later')
    const other = await openDatabase(path)
    onTestFinished(() => other.close())
    const firstRead = other.query('SELECT name FROM modelmount_keys')
    renameSync(copy, path)

    await expect(firstRead).rejects.toMatchObject(unavailable)

    expect(existsSync(`${path}-wal`)).toBe(true)
    await expect(createKey('lost')).rejects.toMatchObject(unavailable)
  })

  test('is rejected if it lacks the tables of this version', async () => {
    await createKey('app')
    const other = await openDatabase(`${path}.other`)
    await other.query('CREATE TABLE notes (text TEXT)')
    await other.close()
    remove('', '-wal', '-shm')
    renameSync(`${path}.other`, path)

    await expect(createKey('lost')).rejects.toMatchObject(unavailable)

    expect(logged.join('\n')).toMatch(/was replaced by one of another schema version\. Restart the app/)
  })

  test('is rejected if a newer version has upgraded it', async () => {
    await createKey('app')
    const copy = await backUp()
    const newer = await openDatabase(copy)
    await newer.query("INSERT INTO modelmount_migrations VALUES ('keys', 99, 'x', 0)")
    await newer.close()
    remove('', '-wal', '-shm')
    renameSync(copy, path)

    await expect(createKey('lost')).rejects.toMatchObject(unavailable)
  })

  test('is not opened with the -wal file of the other, behind a symbolic link', async () => {
    const link = `${path}.link`
    symlinkSync(path, link)
    await createKey('app')
    const copy = await backUp()
    const linked = await openDatabase(link)
    onTestFinished(() => linked.close())
    await linked.query("UPDATE modelmount_keys SET name = 'later'")
    renameSync(copy, path)

    await expect(linked.query("UPDATE modelmount_keys SET name = 'lost'")).rejects.toMatchObject(unavailable)
  })

  test('is opened by an app that has not read from the old file yet', async () => {
    await createKey('app')
    const copy = await backUp()
    const other = await openDatabase(path)
    onTestFinished(() => other.close())
    remove('', '-wal', '-shm')
    renameSync(copy, path)

    expect(await other.query('SELECT name FROM modelmount_keys')).toEqual([{ name: 'app' }])
  })

  test('keeps its own -wal file when the app closes the old file', async () => {
    await createKey('app')
    const copy = await backUp()
    remove('', '-wal', '-shm')
    renameSync(copy, path)
    const other = await openDatabase(path)
    onTestFinished(() => other.close())
    await other.query("UPDATE modelmount_keys SET name = 'renamed'")

    await createKey('new')
    await llm.close()

    expect(existsSync(`${path}-wal`)).toBe(true)
    expect(await other.query('SELECT name FROM modelmount_keys ORDER BY name')).toEqual([
      { name: 'new' },
      { name: 'renamed' },
    ])
  })
})

test.each(['-wal', '-shm'])('nothing is lost when the %s file is deleted', async (suffix) => {
  await createKey('before')
  remove(suffix)

  await createKey('after')
  await llm.close()

  expect(await storedNames()).toEqual(['after', 'before'])
})

test('an app without calls logs a deleted file within a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const warnings: unknown[] = []
  const idle = await open({ warn: (details) => warnings.push(details), error: () => {} })
  onTestFinished(() => idle.close())
  remove('')

  vi.advanceTimersByTime(60_000)

  await expect.poll(() => warnings).toEqual([{ path, err: expect.any(Error) }])
})
