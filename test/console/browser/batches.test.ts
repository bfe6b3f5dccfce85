/** The pages of batches in a browser. */
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { pacedEngine } from '../../support/paced-engine.ts'

const operator = { scopes: ['admin', 'inference'] } as const
const caller = { id: 'night-job' }
/** A text that is harmless only as text. See the incident D-13. */
const hostileText = '<img src=x onerror=document.title=1>'
const engine = pacedEngine(scriptedEngine(hostileText))

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ engine })
})
afterAll(() => engine.allow(Number.POSITIVE_INFINITY))

const request = (customId: string) => ({
  custom_id: customId,
  params: { model: 'tiny', max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] },
})

test('an operator follows a batch, cancels it, and keeps the results so far', async () => {
  const { id } = await app.llm.batches.create([request('first'), request('second')], {
    caller,
    metadata: { project: hostileText },
  })
  const { page, expectGood } = await app.open({ key: operator, page: '#/batches' })

  await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
  await expectGood('batches')
  await page.getByRole('link', { name: id }).click()
  await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
  await expectGood('batch-running')
  await page.getByRole('button', { name: 'Cancel batch' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel batch' }).click()
  await page.getByText('Canceling the batch.').waitFor()
  engine.allow(Number.POSITIVE_INFINITY)
  await app.llm.batches.waitUntilEnded(id)

  // The page reads a running batch again every 5 s.
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByText('second', { exact: true }).click()
  await page.getByRole('region', { name: 'second' }).waitFor()
  await expectGood('batch-results')
  expect(await page.title()).toBe('Batch · Modelmount')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download' }).click(),
  ])
  expect(
    readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\n'),
  ).toHaveLength(2)
})

test('a failed batch says what is wrong, on a phone in the dark too', async () => {
  const { batches } = app.llm.as(caller)
  const file = { purpose: 'batch', filename: 'requests.jsonl' }
  const lines = Readable.from([Buffer.from('\n')])
  const { id: fileId } = await batches.files.create(file, lines)
  const { id } = await batches.createFromFile(fileId, { format: 'openai' })
  await app.llm.batches.waitUntilEnded(id)
  const { page, expectGood } = await app.open({
    ...{ key: operator, page: `#/batches/${id}`, width: 360 },
    colorScheme: 'dark',
  })

  await page.getByText('The file has no requests.').waitFor()
  await expectGood('batch-failed-narrow-dark')
})

test('viewers without the scope admin cannot cancel or read results', async () => {
  const { id } = await app.llm.batches.create([request('only')], { caller })
  const { page } = await app.open({ key: { scopes: ['admin:read'] }, page: '#/batches' })

  await page.getByRole('link', { name: id }).click()
  await page.getByRole('heading', { name: 'Batch', exact: true }).waitFor()
  await page.getByText('/v1/').first().waitFor()
  expect(await page.getByRole('button', { name: /Cancel|Preview/ }).count()).toBe(0)
})
