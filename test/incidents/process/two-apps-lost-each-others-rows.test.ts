/** C-12: two app processes with one data directory overwrote or lost each other's records. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../support/databases.ts'
import { times } from '../../support/scale.ts'

const run = promisify(execFile)
const writer = fileURLToPath(new URL('ledger-writer.mjs', import.meta.url))
const calls = times(4_000, 400)
/** One input token, three output tokens. */
const costNanoUsd = 1_000 + 3 * 2_000

describe.each(databases())('in $name', ({ fresh }) => {
  test(`two processes with ${calls} calls each leave all rows and the exact cost, also for one caller`, async () => {
    const database = await fresh()

    await Promise.all(
      ['shared', 'shared', 'own'].map((caller) =>
        run(process.execPath, [writer, database, caller, String(caller === 'own' ? 10 : calls)]),
      ),
    )

    const llm = await createLlm({ engine: scriptedEngine(''), database })
    onTestFinished(() => llm.close())
    const rows = await llm.usage.report({ by: 'key' })
    const costs = rows.map(({ calls, nanoUsd }) => [calls, BigInt(nanoUsd)])
    expect(costs).toEqual(
      expect.arrayContaining([
        [2 * calls, BigInt(2 * calls * costNanoUsd)],
        [10, BigInt(10 * costNanoUsd)],
      ]),
    )
    expect(costs).toHaveLength(2)
  }, 300_000)
})
