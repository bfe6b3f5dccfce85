/**
 * E-7: a batch was charged again after a restart. The result of an item and its charge must be written together, since
 * the app can be killed at any moment.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../support/databases.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { runKilledBatches } from '../../support/killed-batches.ts'
import { times } from '../../support/scale.ts'

const kills = times(50, 4)
const items = times(500, 40)
const folder = emptyFolder()

test(`${kills} kills of the app during a batch of ${items} items: each item has one result, and is charged once`, {
  timeout: 900_000,
}, async ({ task }) => {
  const location = join(folder, 'modelmount.db')

  const batches = await runKilledBatches(location, { items, apps: 1, appKills: kills, modelKills: 0 })

  task.meta.report = await batches.expectBilledOnce()
})

const postgres = databases().find(({ name }) => name === 'PostgreSQL')

describe.runIf(postgres)('in PostgreSQL', () => {
  /** More than a transaction with a result and its charge has. */
  const statements = 14

  const open = async (database: string, run: boolean): Promise<Llm> => {
    const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
    const engine = scriptedEngine('one two three')
    return createLlm({ engine, database, prices, models: [], batches: { run } })
  }

  test('a kill at each statement that stores a result: each item has one result, and is charged once', async () => {
    const database = (await postgres?.fresh()) as string
    const creator = await open(database, false)
    const caller = { id: 'night', spendingLimit: { usd: 1, period: 'lifetime' as const } }
    const params = { model: 'tiny', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }
    const requests = Array.from({ length: 3 * statements }, (_, number) => ({
      custom_id: `item-${number}`,
      params,
    }))
    const { id } = await creator.batches.create(requests, { caller })
    await creator.close()

    const file = fileURLToPath(new URL('batch-worker.mjs', import.meta.url))
    for (let statement = 0; statement < statements; statement++) {
      const app = spawn(process.execPath, [file, database, String(statement)], { stdio: 'inherit' })
      onTestFinished(() => void app.kill('SIGKILL'))
      expect(await once(app, 'exit')).toEqual([null, 'SIGKILL'])
    }
    const llm = await open(database, true)
    onTestFinished(() => llm.close())
    for await (const _ of llm.batches.watch(id));

    const answers: string[] = []
    for await (const { line } of llm.batches.results(id))
      answers.push((line as { result: { message: { id: string } } }).result.message.id.replace('msg_', ''))
    const calls = await llm.usage.calls({ limit: 1_000 })
    expect(answers).toHaveLength(requests.length)
    expect(calls.map((call) => call.id).sort()).toEqual(answers.sort())
    expect(new Set(calls.map(({ status, nanoUsd }) => `${status} ${nanoUsd}`)).size).toBe(1)
  }, 120_000)
})
