/**
 * An app process was stopped in the middle of a transaction: a paused container, a suspended machine, a debugger.
 * Its calls were over, but PostgreSQL kept the locks of its transaction.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { databases } from '../../support/databases.ts'
import { runLog } from '../../support/run-log.ts'

const [, postgres] = databases()
const script = fileURLToPath(new URL('stopped-process.mjs', import.meta.url))

test.runIf(postgres)(
  'a stopped process that holds the row of a caller delays the calls of this caller by at most 5 s',
  async () => {
    const database = (await postgres?.fresh()) ?? ''
    const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }
    const llm = await createLlm({
      engine: scriptedEngine('Hello.'),
      models: [],
      database,
      prices,
      logger: runLog,
    })
    onTestFinished(() => llm.close())
    const call = async (): Promise<void> => {
      const caller = { id: 'ann', spendingLimit: { usd: 5, period: 'day' } } as const
      const input = { kind: 'text', prompt: ['Hi'] } as const
      const { signal } = new AbortController()
      for await (const _ of await llm.generate({ model: 'one', input }, { signal, caller }));
    }
    await call()

    const stopped = spawn(process.execPath, [script, database], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void stopped.kill('SIGKILL'))
    await once(createInterface({ input: stopped.stdout }), 'line')
    const start = performance.now()
    await Promise.all([call(), call()])

    expect(performance.now() - start).toBeLessThan(5_500)
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([{ group: 'ann', calls: 3 }])
  },
  60_000,
)
