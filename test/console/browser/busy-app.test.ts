/**
 * Pages of an app with a month of calls. With MODELMOUNT_SCREENSHOTS, its pictures are those of the documentation:
 * `MODELMOUNT_SCREENSHOTS=docs/images npx vitest run --project ci test/console/browser/busy-app`
 */
import { join } from 'node:path'
import type { Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeAll, expect, test } from 'vitest'
import type { Queries } from '../../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { emptyFolder } from '../../support/empty-folder.ts'

const names = ['Support bot', 'Search', 'Nightly reports', 'Ada’s laptop', 'Staging'] as const
const models = ['qwen3:8b', 'gemma3:4b'] as const
const hourMs = 3_600_000
const dayMs = 24 * hourMs

let app: ConsoleApp
beforeAll(async () => {
  const database = join(emptyFolder(), 'busy.db')
  app = await startConsole({
    database,
    engine: scriptedEngine('A GGUF file holds the weights, the tokenizer and the chat template of a model.'),
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 4 } },
    tiers: { free: { requestsPerMinute: 20 }, team: { requestsPerMinute: 600, weight: 4 } },
  })
  const queries = await openDatabase(database)
  await fill(app.llm, queries)
  await queries.close()
})

const operator = { name: 'Grace', scopes: ['admin', 'inference', 'models'] } as const

test('the overview of a busy app', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/overview' })

  await page.getByRole('row', { name: /Support bot/ }).waitFor()
  await page.getByRole('cell', { name: 'qwen3:8b', exact: true }).waitFor()
  await expectGood('console-overview', false)
})

test('the keys of a busy app, in the dark', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/keys', colorScheme: 'dark' })

  await page.getByRole('meter', { name: 'Spending of Support bot' }).waitFor()
  expect(await page.getByRole('row').count()).toBeGreaterThan(names.length)
  await expectGood('console-keys', false)
})

test('the playground', async () => {
  const { page, expectGood } = await app.open({ key: operator, page: '#/playground' })

  await page.getByRole('textbox', { name: 'Message' }).fill('What is a GGUF file?')
  await page.keyboard.press('Control+Enter')
  await page.getByText('the chat template of a model.').waitFor()
  await expectGood('console-playground', false)
})

/** Writes a month of calls, more of them by day than by night. */
async function fill(llm: Llm, queries: Queries): Promise<void> {
  const now = Date.now()
  for (const [index, name] of names.entries()) {
    const { key } = await llm.keys.create({
      name,
      ...(index < 3 && { spendingLimit: { usd: [50, 20, 5][index] as number, period: 'month' as const } }),
      ...(index === 1 && { tier: 'team' }),
    })
    for (let age = 0; age < 30; age++) {
      const day = Math.floor(now / dayMs - age) * dayMs
      for (const [rank, model] of models.entries()) {
        const calls = Math.round(
          (420 - 70 * index) * (1 - 0.6 * rank) * (1 + 0.3 * Math.sin(age * 2 + index)),
        )
        await addTraffic(queries, { width: dayMs, start: day, key: key.id, model, calls })
        await addDay(queries, { day: new Date(day).toISOString().slice(0, 10), key: key.id, model, calls })
      }
    }
    for (let age = 0; age < 24; age++) {
      const start = Math.floor(now / hourMs - age) * hourMs
      const busy = 0.25 + 0.75 * Math.sin(((new Date(start).getUTCHours() - 4) / 24) * Math.PI) ** 2
      for (const [rank, model] of models.entries())
        await addTraffic(queries, {
          ...{ width: hourMs, start, key: key.id, model },
          calls: Math.round((40 - 7 * index) * busy * (1 - 0.6 * rank) + ((age * 7 + index * 3) % 5)),
        })
    }
    const month = new Date(now).toISOString().slice(0, 7)
    await queries.query(
      `INSERT INTO modelmount_spending (caller, day, day_spent, month, month_spent, lifetime_spent, exhausted)
       VALUES (?, '', 0, ?, ?, ?, -1)`,
      [key.id, month, [31, 8, 4, 2, 1].map((usd) => usd * 1_000_000_000)[index] as number, 31_400_000_000],
    )
  }
}

interface Sums {
  readonly width: number
  readonly start: number
  readonly key: string
  readonly model: string
  readonly calls: number
}

async function addTraffic(queries: Queries, { width, start, key, model, calls }: Sums): Promise<void> {
  const errors = calls % 17 === 0 ? Math.ceil(calls / 40) : 0
  const sums = [calls, errors, 900 * calls, 540 * calls, 160 * calls, 1_540_000 * calls]
  for (const [isTotal, caller] of [
    [1, ''],
    [0, key],
  ] as const) {
    await queries.query(
      `INSERT INTO modelmount_traffic (width_ms, is_total, start, caller, model, calls, errors, input_tokens,
         cached_input_tokens, output_tokens, nano_usd) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, errors = errors + excluded.errors,
         input_tokens = input_tokens + excluded.input_tokens, nano_usd = nano_usd + excluded.nano_usd,
         cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
         output_tokens = output_tokens + excluded.output_tokens`,
      [width, isTotal, start, caller, model, ...sums],
    )
    for (const [measure, bucket, share] of [
      ['first_token', 31, 0.8],
      ['first_token', 37, 0.2],
      ['duration', 44, 0.8],
      ['duration', 49, 0.2],
    ] as const)
      await queries.query(
        `INSERT INTO modelmount_traffic_times (width_ms, is_total, start, caller, model, measure, bucket, calls)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
        [
          width,
          isTotal,
          start,
          caller,
          model,
          measure,
          bucket + ((start / width) % 3),
          Math.ceil(share * calls),
        ],
      )
  }
}

const addDay = (
  queries: Queries,
  { day, key, model, calls }: { day: string; key: string; model: string; calls: number },
): Promise<unknown> =>
  queries.query(
    `INSERT INTO modelmount_usage_days (day, caller, model, calls, input_tokens, cached_input_tokens,
       cache_write_tokens, output_tokens, nano_usd, unpriced_calls) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, 0)`,
    [day, key, model, calls, 360 * calls, 540 * calls, 160 * calls, 1_540_000 * calls],
  )
