import { afterEach, expect, test, vi } from 'vitest'
import type { Generation } from '../calls/generate.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import { watchCalls } from './watched-calls.ts'

afterEach(() => vi.useRealTimers())

const ann = { id: 'ann' }

/** Only asked for what these tests are about: each call has so many requests left. */
function llmWith(...remaining: number[]) {
  const limits = () =>
    remaining
      .splice(0, 1)
      .map((left) => ({ name: 'requests', limit: 9, remaining: left, resetMs: 5_000 }) as const)
  const admitted: unknown[] = []
  const llm = {
    generate: async (...[, { onLimits }]: Parameters<Llm['generate']>) => onLimits?.(limits()),
    countTokens: async () => 42,
    render: async () => 'the prompt',
    admit: async (...given: unknown[]) => {
      admitted.push(given)
      return limits()
    },
  }
  return { llm: llm as unknown as Llm, admitted }
}

const ask = (llm: Llm): Promise<Generation> =>
  llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: [] } },
    { signal: new AbortController().signal },
  )

test('of several calls the one counts that was left the least, whichever began first', async () => {
  const calls = watchCalls(llmWith(7, 5, 6).llm, 'openai')
  const llm = calls.of(ann)

  for (let call = 0; call < 3; call++) await ask(llm)

  expect(calls.limits()).toMatchObject([{ name: 'requests', limit: 9, remaining: 5 }])
})

test('what a whole answer took is time in which the limit fills', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const calls = watchCalls(llmWith(7).llm, 'openai')
  const llm = calls.of(ann)
  await ask(llm)

  vi.advanceTimersByTime(3_000)
  expect(calls.limits()).toMatchObject([{ remaining: 7, resetMs: 2_000 }])
  vi.advanceTimersByTime(3_000)
  expect(calls.limits()).toMatchObject([{ remaining: 7, resetMs: 0 }])
})

test('how limits stood is known of a call that was let in and failed', async () => {
  const failing = {
    generate: async (...[, { onLimits }]: Parameters<Llm['generate']>) => {
      onLimits?.([{ name: 'requests', limit: 9, remaining: 7, resetMs: 5_000 }])
      throw new LlmError('upstream', 'It broke.')
    },
  }
  const calls = watchCalls(failing as unknown as Llm, 'openai')

  await expect(ask(calls.of(ann))).rejects.toThrow('It broke.')

  expect(calls.limits()).toMatchObject([{ remaining: 7 }])
})

test('nothing is said of limits before a call, and of calls under none', async () => {
  const calls = watchCalls(llmWith().llm, 'openai')
  const llm = calls.of(ann)

  expect(calls.limits()).toEqual([])
  await ask(llm)
  expect(calls.limits()).toEqual([])
})

test('who counts or renders a prompt is let in first, apart from answers, and hears how that stands', async () => {
  const { llm, admitted } = llmWith(7, 6)
  const calls = watchCalls(llm, 'anthropic')
  const request = { model: 'tiny', input: { kind: 'text', prompt: [] } } as const
  const call = { signal: new AbortController().signal }

  expect(await calls.of(ann).countTokens(request, call)).toBe(42)
  expect(calls.limits()).toMatchObject([{ remaining: 7 }])
  expect(await calls.of(ann).render(request, call)).toBe('the prompt')
  expect(calls.limits()).toMatchObject([{ remaining: 6 }])

  expect(admitted).toEqual([
    [ann, 'count'],
    [ann, 'count'],
  ])
})

test('who is not let in is not counted for', async () => {
  const refusal = new LlmError('rate_limit', 'Too many.')
  let counted = 0
  const llm = {
    countTokens: async () => counted++,
    admit: () => Promise.reject(refusal),
  } as unknown as Llm
  const { of } = watchCalls(llm, 'anthropic')

  const asked = of(ann).countTokens(
    { model: 'tiny', input: { kind: 'text', prompt: [] } },
    { signal: new AbortController().signal },
  )

  await expect(asked).rejects.toBe(refusal)
  expect(counted).toBe(0)
})
