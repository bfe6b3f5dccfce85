/** A request with several prompts counts as one call. */
import { type Caller, createLlm, type Llm, LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const prompts = Array.from({ length: 10 }, (_, index) => `prompt ${index}`)

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function serve(caller: Caller, delayMs = 0): Promise<{ llm: Llm; url: string }> {
  const engine = scriptedEngine(
    ({ input }) =>
      JSON.stringify(input).includes('broken') ? new LlmError('upstream', 'It broke.') : 'one two',
    { delayMs },
  )
  const llm = await createLlm({ engine, database: ':memory:', prices, auth: 'host' })
  closing.push(() => llm.close())
  const server = await listen(express().use(llmRouter(llm, { authenticate: () => caller })))
  closing.push(() => server.close())
  return { llm, url: server.url }
}

const ask = (url: string, more: object = {}, signal?: AbortSignal): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', prompt: prompts, max_tokens: 2, ...more }),
    ...(signal && { signal }),
  })

const one: Caller = { id: 'ann', limits: { requestsPerMinute: 6, concurrent: 1 } }

test.each([false, true])(
  'several prompts take one request, one permit and one ledger row (stream: %s)',
  async (stream) => {
    const { llm, url } = await serve(one)

    const response = await ask(url, { stream })
    const text = await response.text()

    expect(response.status).toBe(200)
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('5')
    expect(text.match(/"index":9/g)?.length).toBeGreaterThanOrEqual(1)
    expect(await llm.usage.calls()).toMatchObject([
      { status: 'ended', tokens: { input: 10, output: 20 }, nanoUsd: 10 * 1_000 + 20 * 2_000 },
    ])
    expect((await ask(url)).status).toBe(200)
  },
)

test('several prompts are admitted together or not at all', async () => {
  const worst = 10 * (1_000 + 2 * 2_000)
  const spendingLimit = { usd: worst / 1e9, period: 'month' } as const
  const poor = await serve({ id: 'poor', spendingLimit: { ...spendingLimit, usd: (worst - 1) / 1e9 } })
  const rich = await serve({ id: 'rich', spendingLimit })

  expect((await ask(poor.url)).status).toBe(429)
  expect((await ask(rich.url)).status).toBe(200)

  expect(await poor.llm.usage.calls()).toEqual([])
  expect(await rich.llm.usage.calls()).toMatchObject([{ nanoUsd: worst }])
})

test('without a maximum, the credit must cover a token of each answer', async () => {
  const least = 10 * (1_000 + 2_000)
  const spendingLimit = { usd: least / 1e9, period: 'month' } as const
  const poor = await serve({ id: 'poor', spendingLimit: { ...spendingLimit, usd: (least - 1) / 1e9 } })
  const rich = await serve({ id: 'rich', spendingLimit })
  const noMaximum = { max_tokens: -1 }

  const refused = await ask(poor.url, noMaximum)
  const answered = await ask(rich.url, noMaximum)

  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ error: { code: 'insufficient_quota' } })
  expect(await poor.llm.usage.calls()).toEqual([])
  expect(answered.status).toBe(200)
  expect(((await answered.json()) as { choices: readonly object[] }).choices).toHaveLength(10)
  expect(await rich.llm.usage.calls()).toMatchObject([{ tokens: { output: 10 }, nanoUsd: least }])
})

test('a failed prompt ends the call and releases its permit', async () => {
  const { llm, url } = await serve(one)

  const response = await ask(url, { prompt: ['good', 'broken', 'good'] })

  expect(response.status).toBe(500)
  expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('5')

  expect(await llm.usage.calls()).toMatchObject([{ status: 'failed' }])
  expect((await ask(url)).status).toBe(200)
})

test('an abort between two prompts releases the permit and charges the output', async () => {
  const { llm, url } = await serve(one, 5)
  const aborted = new AbortController()
  const response = await ask(url, { stream: true }, aborted.signal)
  let read = ''
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    read += Buffer.from(chunk).toString()
    if (read.includes('"index":3')) break
  }
  aborted.abort()

  await expect.poll(async () => (await llm.usage.calls()).length).toBe(1)
  const calls = await llm.usage.calls()
  expect(calls).toMatchObject([{ status: 'aborted' }])
  expect(calls[0]?.tokens.output).toBeGreaterThanOrEqual(6)
  expect(calls[0]?.tokens.output).toBeLessThan(20)
  expect((await ask(url)).status).toBe(200)
})
