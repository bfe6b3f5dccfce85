/** The model generates an answer before its reader takes it, as far as the memory for unread output allows. */
import { setImmediate } from 'node:timers/promises'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

const model = 'tiny-llama-spm.f16'
const maxTokens = 400
const counted: Caller = { id: 'counted', limits: { tokensPerMinute: 1_000 } }
const options = { models: noiseModel, local: { contextSize: 1024, parallel: 2 } }
let llm: Llm
/** These share the model process with `llm`. */
let small: Llm
let impatient: Llm

beforeAll(async () => {
  llm = await createLlm(options)
  small = await createLlm({ ...options, outputBuffer: { perCaller: '4kb' } })
  const outputBuffer = { perCaller: '4kb', stallTimeout: '1s' } as const
  impatient = await createLlm({ ...options, database: ':memory:', outputBuffer })
})
afterAll(async () => {
  await llm.close()
  await small.close()
  await impatient.close()
})

type Events = AsyncIterator<GenerateEvent>

async function open(caller: Caller, on = llm): Promise<Events> {
  const { signal } = new AbortController()
  const generation = await on.generate(
    {
      model,
      input: { kind: 'text', prompt: ['Once upon a time'], template: false },
      maxTokens,
      sampling: { temperature: 0, ignoreEos: true },
    },
    { signal, caller },
  )
  return generation[Symbol.asyncIterator]()
}

async function readAll(events: Events): Promise<number> {
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error('The answer has no end.')
    if (value.type === 'end') return value.usage.outputTokens
  }
}

/** Takes what has been generated, up to the first event that has to be waited for. Returns its tokens. */
async function readAtOnce(events: Events): Promise<number> {
  let tokens = 0
  for (;;) {
    const next = events.next()
    const isReady = await Promise.race([next.then(() => true), setImmediate(false)])
    const { value, done } = await next
    if (!done && 'tokens' in value && typeof value.tokens === 'number') tokens += value.tokens
    if (!isReady || done) return tokens
  }
}

test('an answer that nobody reads is generated to its end, and frees its slot and its model', async () => {
  const unread = await Promise.all([open(counted), open(counted)])

  // Both slots are taken, so this answer begins when one of the others has ended.
  expect(await readAll(await open({ id: 'other' }))).toBe(maxTokens)
  await llm.unload(model)

  // The tenants share the slots by time, so the answers that nobody reads may end last.
  await expect.poll(() => llm.loaded(), { timeout: 20_000 }).toEqual([])
  const [status] = await llm.limits.of(counted)
  expect(status?.remaining).toBeLessThan(1_000 - maxTokens)
  for (const events of unread) expect(await readAll(events)).toBe(maxTokens)
})

test('while the memory for unread output is full, the model pauses, and other answers do not', async () => {
  const slow = await open({ id: 'slow' }, small)
  await slow.next()
  // Meanwhile, other answers generate more tokens than fit into the memory of the slow reader.
  for (let count = 0; count < 2; count++)
    expect(await readAll(await open({ id: 'other' }, small))).toBe(maxTokens)

  const waiting = await readAtOnce(slow)
  expect(waiting).toBeGreaterThan(16)
  expect(waiting).toBeLessThan(300)
  expect(await readAll(slow)).toBe(maxTokens)
})

test('the paused answers of readers that take nothing end, and free the model', async () => {
  const unread = await Promise.all([open({ id: 'slow' }, impatient), open({ id: 'slow' }, impatient)])

  await expect.poll(() => impatient.usage.calls(), { timeout: 10_000 }).toHaveLength(2)
  await impatient.unload(model)

  // The usage is recorded before the engine has ended the answers.
  await expect.poll(() => impatient.loaded(), { timeout: 10_000 }).toEqual([])
  for (const { status, undeliveredTokens } of await impatient.usage.calls()) {
    expect(status).toBe('aborted')
    expect(undeliveredTokens).toBeGreaterThan(0)
    expect(undeliveredTokens).toBeLessThan(maxTokens)
  }
  for (const events of unread) {
    await events.next()
    await expect(events.next()).rejects.toMatchObject({ code: 'invalid_request' })
  }
})
