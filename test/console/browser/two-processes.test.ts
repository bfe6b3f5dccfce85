/** The calls of two app processes on one database, in the browser of one of them and with the real engine. */
import { execFileSync } from 'node:child_process'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../support/chromium.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { command, type ServedConsole, serveConsole } from '../../support/served-console.ts'

const data = emptyFolder()
const closers: (() => Promise<void>)[] = []
let one: ServedConsole
let two: ServedConsole
beforeAll(async () => {
  // One after the other: the first one creates the tables.
  one = await serveConsole(data)
  two = await serveConsole(data)
  closers.push(one.close, two.close)
})
afterAll(() => Promise.all(closers.map((close) => close())))

/** Begins an answer that takes long. Rejects when it ends with an error. */
async function read(server: ServedConsole, apiKey: string, signal?: AbortSignal): Promise<void> {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 })
  const answer = await client.chat.completions.create(
    {
      model: 'tiny-chat',
      stream: true,
      max_tokens: 4_000,
      messages: [{ role: 'user', content: 'Count to five.' }],
      // Otherwise the model stops after a few words.
      logit_bias: { 0: -100, 1: -100, 2: -100 },
    },
    { signal },
  )
  for await (const _chunk of answer);
}

test('the page of one process shows the calls of both, and cancels one of the other', {
  timeout: 60_000,
}, async () => {
  const create = [command, 'keys', 'create', 'bot', '--data', data]
  const [apiKey = ''] = /sk-mm-\S+/.exec(execFileSync(process.execPath, create, { encoding: 'utf8' })) ?? []
  const browser = await launchChromium()
  closers.push(() => browser.close())
  const page = await browser.newPage({ locale: 'en-US' })
  await page.goto(one.link)
  await page.getByRole('link', { name: 'Live calls' }).click()
  await page.getByText('No calls run now').waitFor()

  const stop = new AbortController()
  const own = read(one, apiKey, stop.signal).catch(() => 'aborted')
  const other = read(two, apiKey).then(
    () => 'answered',
    (error: Error) => error.message,
  )
  const rowOf = ({ pid }: ServedConsole) => page.getByRole('row').filter({ hasText: `${pid}` })
  await rowOf(one).waitFor()
  await rowOf(two).waitFor()
  await rowOf(two)
    .getByRole('button', { name: /Cancel the call/ })
    .click()
  await page.getByRole('button', { name: 'Cancel call' }).click()

  await page.getByText('The process of the call ends it.').waitFor()
  expect(await other).toContain('An operator of this app has canceled the call.')
  await rowOf(two).waitFor({ state: 'detached' })
  expect(await rowOf(one).count()).toBe(1)
  stop.abort()
  await own
})
