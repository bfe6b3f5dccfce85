/** One usage report blocked the event loop of the app for 7 s, and authentication for 10 s. */
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { emptyFolder } from '../../support/empty-folder.ts'

const folder = emptyFolder()
const rows = 200_000

/** One row of sums for each key and day. */
const fill = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows - 1})
  INSERT INTO modelmount_usage_days (day, caller, model, calls, input_tokens, cached_input_tokens,
    cache_write_tokens, output_tokens, nano_usd, unpriced_calls)
  SELECT date('2026-01-01', (i % 20) || ' days'), 'key_' || (i / 20), 'tiny', 1, 100, 0, 0, 50, 1000, 0 FROM n`

test('callers authenticate while three reports run, and the event loop goes on', async () => {
  const database = join(folder, 'data.db')
  const llm = await createLlm({ engine: scriptedEngine(''), models: [], auth: 'keys', database })
  onTestFinished(() => llm.close())
  const filling = await openDatabase(database)
  await filling.query(fill)
  await filling.close()
  const { key, secret } = await llm.keys.create({ name: 'app' })
  const authenticate = () => llm.apiKeyGenerator({ headers: { authorization: `Bearer ${secret}` } })

  let running = 3
  const reports = (['model', 'day', 'tenant'] as const).map((by) =>
    llm.usage.report({ by }).finally(() => running--),
  )
  let authenticated = 0
  while (running > 0) {
    expect(await authenticate()).toMatchObject({ id: `caller:${key.id}` })
    if (running === 3) authenticated++
  }

  expect(authenticated).toBeGreaterThan(1)
  const [byModel] = await Promise.all(reports)
  expect(byModel).toMatchObject([{ group: 'tiny', calls: rows }])
})
