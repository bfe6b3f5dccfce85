import { beforeEach, expect, test } from 'vitest'
import type { ActiveBatch } from '../batch.ts'
import { BatchScheduler } from './batch-scheduler.ts'

const clock = { now: 1_000 }
let scheduler: BatchScheduler

beforeEach(() => {
  clock.now = 1_000
  scheduler = new BatchScheduler(() => clock.now)
})

const batch = (id: string, tenant: string): ActiveBatch => ({
  ...{ id, tenant, format: 'anthropic', endpoint: '/v1/messages' },
  caller: { id: tenant },
})
const [a1, a2, b1] = [batch('a1', 'a'), batch('a2', 'a'), batch('b1', 'b')]

/** Serves the next batch, and returns its id. */
function serve(...active: readonly ActiveBatch[]): string | undefined {
  const [next] = scheduler.inOrder(active)
  if (next) scheduler.onTaken(next)
  return next?.id
}

test('a batch keeps its turn for 15 s, then the next tenant has one', () => {
  expect(serve(a1, a2, b1)).toBe('a1')
  clock.now += 14_999
  expect(serve(a1, a2, b1)).toBe('a1')
  clock.now += 1
  expect(serve(a1, a2, b1)).toBe('b1')
  clock.now += 15_000
  expect(serve(a1, a2, b1)).toBe('a1')
})

test('the oldest batch of a tenant comes first, and the next one when it has ended', () => {
  expect(serve(a1, a2)).toBe('a1')
  clock.now += 15_000
  expect(serve(a1, a2)).toBe('a1')
  expect(serve(a2)).toBe('a2')
})

test('a tenant that arrives is next', () => {
  serve(a1)
  clock.now += 60_000
  serve(a1)
  clock.now += 15_000

  expect(serve(a1, b1)).toBe('b1')
})
