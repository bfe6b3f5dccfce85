import { expect, test } from 'vitest'
import { applyEvent, type LiveCall, queuesOf, sumCalls } from './live-calls.ts'

const call = (id: string, more: Partial<LiveCall> = {}): LiveCall => ({
  id,
  kind: 'generate',
  model: 'tiny:latest',
  isKnownModel: true,
  tenant: '',
  isBackground: false,
  isBatchItem: false,
  phase: 'decoding',
  startedAt: '2026-03-01T12:00:00.000Z',
  ageMs: 1_000,
  inputTokens: 10,
  reusedTokens: 0,
  outputTokens: 5,
  tokensPerSecond: 20,
  process: { id: 'p1', host: 'app-1', pid: 1 },
  canCancel: true,
  ...more,
})
const ids = ({ calls }: { readonly calls: readonly LiveCall[] }) => calls.map(({ id }) => id)

test('The first event has all calls, the oldest first', () => {
  const state = applyEvent(
    undefined,
    { data: [call('b', { startedAt: '2026-03-01T12:00:01.000Z' }), call('a')], isShared: true },
    5_000,
  )
  expect(ids(state)).toEqual(['a', 'b'])
  expect(state.isShared).toBe(true)
})

test('The time of the beginning follows from the age, whatever the clock of the server says', () => {
  const state = applyEvent(undefined, { data: [call('a')], isShared: true }, 5_000)
  expect(state.calls[0]?.startedMs).toBe(4_000)
})

test('Changes replace, add and remove calls', () => {
  const first = applyEvent(undefined, { data: [call('a'), call('b')], isShared: true }, 5_000)
  const next = applyEvent(
    first,
    { changed: [call('b', { outputTokens: 9 }), call('c')], ended: ['a'] },
    6_000,
  )
  expect(ids(next)).toEqual(['b', 'c'])
  expect(next.calls[0]?.outputTokens).toBe(9)
  expect(next.isShared).toBe(true)
})

test('A call that ends before its change arrives does not return', () => {
  const first = applyEvent(undefined, { data: [call('a')], isShared: true }, 5_000)
  expect(ids(applyEvent(first, { changed: [call('a')], ended: ['a'] }, 6_000))).toEqual([])
})

test('Only calls that generate have a speed', () => {
  const sums = sumCalls([
    call('a'),
    call('b', { phase: 'prompt' }),
    call('c', { phase: 'queued', process: { id: 'p2', host: 'app-2', pid: 2 } }),
  ])
  expect(sums).toEqual({ running: 2, queued: 1, tokensPerSecond: 20, processes: 2 })
})

test('The longest queue comes first, with the age of its oldest call', () => {
  const { calls } = applyEvent(
    undefined,
    {
      isShared: true,
      data: [
        call('a', { phase: 'queued', model: 'x', ageMs: 500 }),
        call('b', { phase: 'queued', model: 'y', ageMs: 700 }),
        call('c', { phase: 'queued', model: 'y', ageMs: 900 }),
        call('d'),
      ],
    },
    1_000,
  )
  expect(queuesOf(calls)).toEqual([
    { model: 'y', waiting: 2, oldestMs: 100 },
    { model: 'x', waiting: 1, oldestMs: 500 },
  ])
})
