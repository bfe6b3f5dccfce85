/**
 * llama.cpp's DRY sampler searches the vocabulary for each sequence breaker and tokenizes pieces of it, between
 * two steps of all streams. So a short request stopped them for seconds, or crashed the tokenizer (B-5).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgedPreTokenizer } from '../../support/forgeries.ts'
import { type Listening, listen } from '../../support/listen.ts'

let folder: string
let llm: Llm
let server: Listening

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'breakers-'))
  await writeFile(join(folder, 'regex.gguf'), forgedPreTokenizer('gpt-4o'))
  await writeFile(join(folder, 'spaces.gguf'), forgedPreTokenizer('whitespace'))
  llm = await createLlm({ models: folder, local: { contextSize: 4_096, parallel: 2, maxLoadedModels: 2 } })
  server = await listen(toNodeHandler(routesFor(), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
  await rm(folder, { recursive: true })
})

async function complete(model: string, breakers: readonly string[]): Promise<number> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model, max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] },
      ...{ dry_multiplier: 1, dry_sequence_breakers: breakers },
    }),
  })
  await response.arrayBuffer()
  return response.status
}

/** Fails in the test that awaits it, not before. */
function settled(work: Promise<void>): Promise<void> {
  work.catch(() => {})
  return work
}

/** Streams until the work is done. Returns the last event, and the longest time between two events in ms. */
async function streamDuring(model: string, work: () => Promise<void>) {
  const request = {
    model,
    input: { kind: 'text' as const, prompt: ['Hello'], template: false as const },
    maxTokens: 3_000,
    sampling: { ignoreEos: true },
  }
  const signal = new AbortController().signal
  let working: Promise<void> | undefined
  let isDone = false
  let [last, longestMs, at] = ['', 0, performance.now()]
  for await (const event of await llm.generate(request, { signal, stream: true })) {
    const now = performance.now()
    if (working) longestMs = Math.max(longestMs, now - at)
    at = now
    last = event.type
    working ??= settled(
      work().finally(() => {
        isDone = true
      }),
    )
    if (isDone) break
  }
  await working
  return { last, longestMs }
}

const processIdOf = (model: string) => llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId

test('breakers that overlap with much of the vocabulary do not stop the stream of another caller', async () => {
  const breakers = [...'etaonisr'].map((letter) => `${letter.repeat(38)}\u0001x`)
  await llm.load('regex')
  await complete('regex', ['\n'])
  const processId = processIdOf('regex')

  const { last, longestMs } = await streamDuring('regex', async () => {
    for (let calls = 0; calls < 3; calls++) expect(await complete('regex', breakers)).toBe(200)
  })

  expect(last).toBe('text')
  // llama.cpp's search took 1,500 ms.
  expect(longestMs).toBeLessThan(700)
  expect(processIdOf('regex')).toBe(processId)
})

test('a breaker that crashes the tokenizer ends neither its own answer nor another stream', async () => {
  await llm.load('spaces')
  const processId = processIdOf('spaces')

  const { last } = await streamDuring('spaces', async () => {
    expect(await complete('spaces', ['\n  ', '.  x'])).toBe(200)
  })

  expect(last).toBe('text')
  expect(processIdOf('spaces')).toBe(processId)
})
