/** For callers with token limits, generation pauses while a slow client does not read. */
import { setImmediate } from 'node:timers/promises'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

let llm: Llm
const caller: Caller = { id: 'counted', limits: { tokensPerMinute: 100_000 } }

beforeAll(async () => {
  llm = await createLlm({ models: noiseModel, local: { contextSize: 1024, parallel: 2 } })
})
afterAll(() => llm.close())

async function ask(asCaller?: Caller): Promise<AsyncIterator<GenerateEvent>> {
  const generation = await llm.generate(
    {
      model: 'tiny-llama-spm.f16',
      input: { kind: 'text', prompt: ['Once upon a time'], template: false },
      maxTokens: 400,
      sampling: { temperature: 0, ignoreEos: true },
    },
    { signal: new AbortController().signal, ...(asCaller && { caller: asCaller }) },
  )
  return generation[Symbol.asyncIterator]()
}

const tokensOf = ({ value }: IteratorResult<GenerateEvent>): number =>
  value && 'tokens' in value && typeof value.tokens === 'number' ? value.tokens : 0

/** Counts the tokens of the buffered events and of the first event after them. */
async function readAtOnce(events: AsyncIterator<GenerateEvent>): Promise<number> {
  let tokens = 0
  for (;;) {
    const next = events.next()
    const step = await Promise.race([next, setImmediate('nothing' as const)])
    if (step === 'nothing') {
      const late = await next
      return tokens + tokensOf(late)
    }
    if (step.done) return tokens
    tokens += tokensOf(step)
  }
}

async function readAll(events: AsyncIterator<GenerateEvent>): Promise<number> {
  let tokens = 0
  for (let step = await events.next(); !step.done; step = await events.next()) tokens += tokensOf(step)
  return tokens
}

test('a slow client with token limits has about 64 tokens buffered, and gets the rest when it continues', async () => {
  const slow = await ask(caller)
  await slow.next()
  // Meanwhile, another call generates more tokens than the buffer of the slow client may contain.
  expect(await readAll(await ask())).toBeGreaterThan(300)

  const waiting = await readAtOnce(slow)
  expect(waiting).toBeGreaterThan(16)
  expect(waiting).toBeLessThan(96)

  expect(waiting + (await readAll(slow))).toBeGreaterThan(300)
})

test('a slow client without limits finds its whole answer buffered', async () => {
  const slow = await ask()
  await slow.next()
  await readAll(await ask())
  await readAll(await ask())

  expect(await readAtOnce(slow)).toBeGreaterThan(300)
})
