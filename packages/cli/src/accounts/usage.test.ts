import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { readPrices } from './prices.ts'
import { toUsd, usage } from './usage.ts'

const data = emptyFolder()

beforeAll(async () => {
  const prices = join(data, 'prices.json')
  writeFileSync(prices, '{"tiny": {"inputPerMillionUsd": 1, "outputPerMillionUsd": 2}}')
  const llm = await createLlm({
    engine: scriptedEngine('one two three'),
    database: join(data, 'modelmount.db'),
    prices: readPrices(prices),
  })
  const caller = { id: 'key_1', key: { id: 'key_1', name: 'Reports' } }
  const { signal } = new AbortController()
  for (const model of ['tiny', 'other']) {
    const content = [{ type: 'text' as const, text: 'Hi' }]
    const input = { kind: 'chat' as const, messages: [{ role: 'user' as const, content }] }
    for await (const _event of await llm.generate({ model, input }, { signal, caller }));
  }
  await llm.close()
})

test('prints a table of usage and cost', async () => {
  const lines = (await usage({ data, by: 'key' })).trimEnd().split('\n')

  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['KEY', 'CALLS', 'INPUT', 'CACHED', 'WRITTEN', 'OUTPUT', 'USD', 'BATCHES'],
    ['Reports (key_1)', '2', '2', '0', '0', '6', '0.000007'],
  ])
})

test('marks models without a price', async () => {
  expect(await usage({ data, by: 'model' })).toMatch(/^other .* no price$/m)
})

const noBatches = {
  calls: 0,
  tokens: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 },
  nanoUsd: '0',
}

test('JSON has exact amounts', async () => {
  const rows: unknown = JSON.parse(await usage({ data, by: 'model', json: true, from: new Date() }))

  expect(rows).toEqual([
    {
      group: 'other',
      calls: 1,
      tokens: { input: 1, cachedInput: 0, cacheWrite: 0, output: 3 },
      undeliveredTokens: 0,
      unpricedCalls: 1,
      nanoUsd: '0',
      batch: noBatches,
    },
    {
      group: 'tiny:latest',
      calls: 1,
      tokens: { input: 1, cachedInput: 0, cacheWrite: 0, output: 3 },
      undeliveredTokens: 0,
      unpricedCalls: 0,
      nanoUsd: '7000',
      batch: noBatches,
    },
  ])
})

test('prints one page, and how to get the next one on stderr', async () => {
  const notes: string[] = []
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => notes.push(String(text)) > 0)
  onTestFinished(() => write.mockRestore())

  const first = JSON.parse(await usage({ data, by: 'model', json: true, limit: 1 })) as { group: string }[]
  const second = JSON.parse(
    await usage({ data, by: 'model', json: true, limit: 2, after: 'other' }),
  ) as object[]

  expect(first).toMatchObject([{ group: 'other' }])
  expect(second).toMatchObject([{ group: 'tiny:latest' }])
  expect(notes).toEqual(['There may be more. The next page: --after other\n'])
})

test('omits days out of range', async () => {
  expect(JSON.parse(await usage({ data, by: 'day', json: true, to: new Date(0) }))).toEqual([])
})

test('an absent database is an error with its path', async () => {
  await expect(usage({ data: join(data, 'none'), by: 'key' })).rejects.toThrow('No database found at')
})

test('unreadable prices are an error', () => {
  expect(() => readPrices(join(data, 'missing.json'))).toThrow('missing.json does not exist.')
  writeFileSync(join(data, 'list.json'), '[]')
  expect(() => readPrices(join(data, 'list.json'))).toThrow('Expected an object of prices')
})

test('writes exact dollars', () => {
  expect([0n, 42_000n, 1_500_000_000n, 12n * 10n ** 9n].map(toUsd)).toEqual([
    '0.00',
    '0.000042',
    '1.50',
    '12.00',
  ])
})
