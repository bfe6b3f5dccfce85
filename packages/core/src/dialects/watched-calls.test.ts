import { afterEach, expect, test, vi } from 'vitest'
import type { Generation } from '../generate.ts'
import type { Llm } from '../llm.ts'
import { watchCalls } from './watched-calls.ts'

afterEach(() => vi.useRealTimers())

/** Only asked to generate here: each call has so many requests left. */
const llmWith = (...remaining: number[]): Llm =>
  ({
    generate: async () => ({
      limits: remaining
        .splice(0, 1)
        .map((left) => ({ name: 'requests', limit: 9, remaining: left, resetMs: 5_000 })),
    }),
  }) as unknown as Llm

const ask = (llm: Llm): Promise<Generation> =>
  llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: [] } },
    { signal: new AbortController().signal },
  )

test('of several calls the one counts that was left the least, whichever began first', async () => {
  const { llm, limits } = watchCalls(llmWith(7, 5, 6), 'openai')

  for (let call = 0; call < 3; call++) await ask(llm)

  expect(limits()).toMatchObject([{ name: 'requests', limit: 9, remaining: 5 }])
})

test('what a whole answer took is time in which the limit fills', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { llm, limits } = watchCalls(llmWith(7), 'openai')
  await ask(llm)

  vi.advanceTimersByTime(3_000)
  expect(limits()).toMatchObject([{ remaining: 7, resetMs: 2_000 }])
  vi.advanceTimersByTime(3_000)
  expect(limits()).toMatchObject([{ remaining: 7, resetMs: 0 }])
})

test('nothing is said of limits before a call, and of calls under none', async () => {
  const { llm, limits } = watchCalls(llmWith(), 'openai')

  expect(limits()).toEqual([])
  await ask(llm)
  expect(limits()).toEqual([])
})
