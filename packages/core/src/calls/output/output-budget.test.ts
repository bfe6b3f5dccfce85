import { expect, test, vi } from 'vitest'
import { type GenerateEvent, type SampledToken, uncached } from '../../engine/events.ts'
import type { LlmError } from '../../errors.ts'
import { OutputBudget } from './output-budget.ts'
import { OutputBuffer } from './output-buffer.ts'

const limits = { tenantBytes: 1e6, totalBytes: 1e6, stallMs: 60_000 }
const reader = (tenant = 'ann') => ({ tenant, unreadBytes: 0, activeAtTick: 0 })
const open = (
  budget: OutputBudget,
  of = reader(),
  onStall: (error: LlmError) => void = () => {},
): OutputBuffer => new OutputBuffer(budget, of, onStall)
const text = (text: string, logprobs?: readonly SampledToken[]): GenerateEvent => ({
  type: 'text',
  text,
  tokens: 1,
  ...(logprobs && { logprobs }),
})
const sampled = (alternatives: number): SampledToken => {
  const token = { id: 1, text: 'a', bytes: [97], logprob: -1 }
  return { ...token, top: Array.from({ length: alternatives }, () => token) }
}
const sizeOf = (event: GenerateEvent): number => {
  const budget = new OutputBudget(limits)
  open(budget).push(event)
  budget.close()
  return budget.bytes
}

test('returns items in order, and their bytes to the budget', () => {
  const budget = new OutputBudget(limits)
  const buffer = open(budget)
  const events = ['one', 'two', 'three'].map((word) => text(word))

  for (const event of events) buffer.push(event)
  const bytes = budget.bytes
  const taken = [buffer.take(), buffer.take(), buffer.take(), buffer.take()]

  expect(taken).toEqual([...events, undefined])
  expect(bytes).toBeGreaterThan(0)
  expect(budget.bytes).toBe(0)
  budget.close()
})

test('a closed buffer returns its bytes, and resumes its generation', async () => {
  const budget = new OutputBudget({ ...limits, tenantBytes: 0 })
  const buffer = open(budget)
  buffer.push(text('one'))
  const room = buffer.whenRoom()

  buffer.close()

  await room
  expect(budget.bytes).toBe(0)
})

test('a buffer is full while it is not empty and its tenant exceeds the budget', () => {
  const perTenant = new OutputBudget({ ...limits, tenantBytes: 200 })
  const [ann, bob] = [open(perTenant, reader('ann')), open(perTenant, reader('bob'))]
  const empty = open(perTenant, reader('ann'))
  ann.push(text('x'.repeat(100)))
  bob.push(text('x'))
  expect([ann.isFull, bob.isFull, empty.isFull]).toEqual([true, false, false])
  perTenant.close()
})

test('a tenant may use as much of the total as it leaves free', () => {
  const budget = new OutputBudget({ ...limits, totalBytes: 1_000 })
  const [ann, bob] = [open(budget, reader('ann')), open(budget, reader('bob'))]

  ann.push(text('x'.repeat(150))) // 428 bytes
  const alone = ann.isFull
  ann.push(text('x')) // 130 bytes
  bob.push(text('x'))

  expect([alone, ann.isFull, bob.isFull]).toEqual([false, true, false])
  bob.push(text('x'.repeat(30)))
  expect(bob.isFull).toBe(true)
  ann.take()
  expect([ann.isFull, bob.isFull]).toEqual([false, false])
  budget.close()
})

test('while the total has room, taking an event checks no buffers of other tenants', () => {
  const budget = new OutputBudget({ ...limits, tenantBytes: 200 })
  for (let index = 0; index < 100; index++) {
    const paused = open(budget, reader(`tenant ${index}`))
    paused.push(text('x'.repeat(100)))
    void paused.whenRoom()
  }
  const bob = open(budget, reader('bob'))
  for (let index = 0; index < 2; index++) bob.push(text('x'))
  const isUsedUp = vi.spyOn(budget, 'isUsedUp')

  for (let index = 0; index < 2; index++) bob.take()

  expect(isUsedUp.mock.calls.length).toBeLessThan(10)
  budget.close()
})

test('a buffer that pauses because of the total resumes when another tenant takes an event', async () => {
  const budget = new OutputBudget({ ...limits, totalBytes: 1_000 })
  const [ann, bob] = [open(budget, reader('ann')), open(budget, reader('bob'))]
  for (let index = 0; index < 3; index++) bob.push(text('x'.repeat(50))) // 228 bytes each
  ann.push(text('x'.repeat(100))) // 328 bytes
  let hasRoom = false
  const resumed = ann.whenRoom().then(() => {
    hasRoom = true
  })
  bob.take()
  await Promise.resolve()
  const before = hasRoom

  bob.take()

  await resumed
  expect([before, hasRoom]).toEqual([false, true])
  budget.close()
})

test('counts each alternative of a token, and each id of the tokens of an answer', () => {
  const none = sizeOf(text('a'))

  const twenty = sizeOf(text('a', [sampled(20)]))
  const prompt = sizeOf({ type: 'prompt', tokens: Array.from({ length: 100 }, () => sampled(20)) })
  const usage = { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 1_000 }
  const timings = { loadMs: 0, promptMs: 0, generateMs: 0 }
  const end = { type: 'end', finishReason: 'stop', usage, timings } as const

  expect(twenty - none).toBeGreaterThan(20 * 100)
  expect(prompt).toBeGreaterThan(100 * 20 * 100)
  expect(sizeOf({ ...end, tokens: Array.from({ length: 1_000 }, () => 1) }) - sizeOf(end)).toBe(8_000)
})

test('no timer remains when all buffers are empty', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const stalled: unknown[] = []
  const budget = new OutputBudget(limits)
  const buffer = open(budget, reader(), (error) => stalled.push(error))
  buffer.push(text('one'))
  const during = vi.getTimerCount()
  buffer.take()

  vi.advanceTimersByTime(60_000)

  expect([during, vi.getTimerCount()]).toEqual([1, 0])
  expect(stalled).toEqual([])
  vi.useRealTimers()
})
