/** API keys of one tenant have one share of the model's time together, however many they are. */
import { createLlm, type Llm } from '@modelmount/core'
import { readEvents } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Listening, listen } from '../support/listen.ts'
import { noiseModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

const otherKeys = 10
/** Long enough for several turns, even where a turn is a second. */
const ownTokens = 1_200
let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({
    models: noiseModel,
    auth: 'keys',
    database: ':memory:',
    local: { contextSize: 4096, parallel: 2 },
  })
  server = await listen(express().use(llmRouter(llm)))
})
afterAll(async () => {
  await server.close()
  await llm.close()
})

/** Yields the events of a stream. Nearly all of them have one token. */
async function* ask(secret: string, prompt: string, maxTokens: number, signal: AbortSignal) {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', 'x-api-key': secret },
    body: JSON.stringify({
      model: 'tiny-llama-spm.f16',
      stream: true,
      prompt,
      max_tokens: maxTokens,
      ignore_eos: true,
    }),
  })
  expect(response.status).toBe(200)
  yield* readEvents(response.body as AsyncIterable<Uint8Array>)
}

/**
 * Measures how many tokens ten keys get for each token of an eleventh key, while all of them want answers.
 *
 * @param tenant of the ten keys. By default, each is its own tenant
 */
async function measureOthers(tenant?: string): Promise<number> {
  const leaving = new AbortController()
  const { signal } = leaving
  let others = 0
  let onBegin = (): void => {}
  const hasBegun = new Promise<void>((resolve) => {
    onBegin = resolve
  })
  const flood = async (index: number): Promise<void> => {
    const { secret } = await llm.keys.create({
      name: `other ${index}`,
      ...(tenant !== undefined && { tenant }),
    })
    while (!signal.aborted)
      for await (const _ of ask(secret, `Story ${index}:`, 2_000, signal)) if (++others === 20) onBegin()
  }
  const floods = Array.from({ length: otherKeys }, (_, index) =>
    flood(index).catch((cause: unknown) => {
      if (!signal.aborted) throw cause
    }),
  )
  await Promise.race([hasBegun, ...floods])

  const { secret } = await llm.keys.create({ name: 'own' })
  let own = 0
  let before = 0
  for await (const _ of ask(secret, 'Once upon a time', ownTokens, signal)) if (++own === 1) before = others
  const during = others - before
  leaving.abort()
  await Promise.all(floods)

  expect(own).toBeGreaterThan(ownTokens / 2)
  return during / own
}

test('ten keys of one tenant get no more than a key of another tenant', async () => {
  expect(await measureOthers('team')).toBeLessThan(2.5)
}, 60_000)

test('ten keys without a common tenant get a share each', async () => {
  expect(await measureOthers()).toBeGreaterThan(4)
}, 120_000)
