/** Secrets of API keys appear in no log message, error or response, also when the database fails. */

import { inspect } from 'node:util'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from '../support/databases.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

test.each(databases())('no log message or response contains a secret ($name)', async ({ fresh }) => {
  const logged: string[] = []
  const keep = (...args: unknown[]) => void logged.push(inspect(args, { depth: 10, maxStringLength: 1_000 }))
  const location = await fresh()
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: emptyFolder(),
    auth: 'keys',
    database: location,
    logger: { warn: keep, error: keep, debug: keep },
  })
  const { url, close } = await listen(express().use('/admin', adminRouter(llm)).use(llmRouter(llm)))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const { secret: admin } = await llm.keys.create({ name: 'root', scopes: ['admin', 'inference'] })
  const { key, secret } = await llm.keys.create({ name: 'canary', models: ['other'] })
  const wrong = `${secret.slice(0, -6)}canary`

  const answers: string[] = []
  const ask = async (path: string, headers: Record<string, string>, method = 'GET', body?: string) => {
    const response = await fetch(url + path, { method, headers, ...(body && { body }) })
    answers.push(inspect([...response.headers]), await response.text())
    return response.status
  }
  const askAll = async () => [
    await ask('/v1/models', { 'x-api-key': secret }),
    await ask('/v1/models', { 'x-api-key': wrong }),
    await ask('/v1/models', { authorization: `Bearer ${wrong}`, 'x-api-key': secret }),
    await ask(
      '/v1/messages',
      { 'x-api-key': secret },
      'POST',
      '{"model":"tiny","max_tokens":1,"messages":[]}',
    ),
    await ask('/api/chat', { 'x-api-key': secret }, 'POST', '{'),
    await ask('/admin/keys', { 'x-api-key': admin }),
    await ask(`/admin/keys/${key.id}`, { 'x-api-key': admin }),
    await ask('/admin/keys', { 'x-api-key': secret }),
  ]

  expect(await askAll()).toEqual([200, 401, 401, 400, 400, 200, 200, 403])
  // A failed query is logged with the complete error of the database.
  const other = await openDatabase(location)
  await other.query('ALTER TABLE modelmount_key_secrets RENAME TO modelmount_elsewhere')
  await other.close()
  expect((await askAll()).slice(0, 2)).toEqual([500, 500])

  expect(logged.join('\n')).toContain('modelmount_key_secrets')
  for (const canary of [secret, admin, wrong])
    for (const text of [...logged, ...answers]) expect(text).not.toContain(canary.slice(-43))
})
