/** While another process kept the database locked, calls waited for each other and got an error 500. */
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { lockDatabase } from '../../support/lock-database.ts'
import { chats, serveScripted } from '../../support/served.ts'

const folder = emptyFolder()

test('every API responds with 503 and retry-after within 8 s, and calls work again after the lock', async () => {
  const database = join(folder, 'data.db')
  const logged: unknown[] = []
  const logger = { warn: () => {}, error: (_details: object, message: string) => logged.push(message) }
  const { llm, post } = await serveScripted(folder, { auth: 'keys', database, logger })
  const limits = { requestsPerMinute: 100 }
  const keys = await Promise.all(chats.map(({ path }) => llm.keys.create({ name: path, limits })))
  const askAll = () =>
    Promise.all(
      chats.map(({ path, body }, index) =>
        post(path, body, { authorization: `Bearer ${keys[index]?.secret}` }),
      ),
    )
  const release = await lockDatabase(database)
  const startedAt = performance.now()

  const responses = await askAll()
  const elapsedMs = performance.now() - startedAt
  release()

  expect(responses.map(({ status }) => status)).toEqual([503, 503, 503])
  expect(responses.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1'])
  expect(elapsedMs).toBeLessThan(8_000)
  // One error for each call. The jobs of usage and of batches may add one each when they run meanwhile.
  expect(new Set(logged)).toEqual(new Set(['The database is unavailable. Try again in 1 s.']))
  expect(logged.length).toBeGreaterThanOrEqual(3)
  expect(logged.length).toBeLessThanOrEqual(5)
  expect((await askAll()).map(({ status }) => status)).toEqual([200, 200, 200])
})

test('many writes do not wait one after the other: each fails within 8 s, and none runs later', async () => {
  const path = join(folder, 'many.db')
  const database = await openDatabase(path)
  onTestFinished(() => database.close())
  await database.query('CREATE TABLE things (id INTEGER PRIMARY KEY)')
  const release = await lockDatabase(path)
  const startedAt = performance.now()

  const writes = Array.from({ length: 1_500 }, (_, id) =>
    database.query('INSERT INTO things VALUES (?)', [id]).catch(({ code }) => code),
  )

  expect(new Set(await Promise.all(writes))).toEqual(new Set(['unavailable']))
  expect(performance.now() - startedAt).toBeLessThan(8_000)
  release()
  await database.query('INSERT INTO things VALUES (-1)')
  expect(await database.query('SELECT id FROM things')).toEqual([{ id: -1 }])
})
