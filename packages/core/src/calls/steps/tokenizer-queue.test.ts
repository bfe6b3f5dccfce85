import { expect, test } from 'vitest'
import { Call } from '../call.ts'
import type { CallKind } from '../kind.ts'
import { QueueStep } from './queue.ts'

/** A queue step with two permits, whose calls never end. */
function fullStep() {
  const step = new QueueStep({ permits: 2, maxQueued: 2, timeoutMs: Number.POSITIVE_INFINITY })
  return async (kind: CallKind, id = 'greedy'): Promise<'admitted' | 'waiting' | 'overloaded'> => {
    const { signal } = new AbortController()
    const call = new Call({ kind, signal, requests: [{ model: 'tiny' }], caller: { id } })
    let state: 'admitted' | 'waiting' | 'overloaded' = 'waiting'
    step.before(call).then(
      () => {
        state = 'admitted'
      },
      () => {
        state = 'overloaded'
      },
    )
    await new Promise((resolve) => setImmediate(resolve))
    return state
  }
}

test('calls that count or tokenize share permits, and take none of generations', async () => {
  const enter = fullStep()

  expect([await enter('count'), await enter('tokenize')]).toEqual(['admitted', 'admitted'])
  expect([await enter('render'), await enter('detokenize')]).toEqual(['waiting', 'waiting'])
  expect([await enter('generate'), await enter('generate')]).toEqual(['admitted', 'admitted'])
})

test('when the queue of counting is full, the caller with the most waiting calls is rejected', async () => {
  const enter = fullStep()
  for (let call = 0; call < 4; call++) await enter('count')

  expect(await enter('count')).toBe('overloaded')
  // Each tenant has at least one permit.
  expect(await enter('count', 'ann')).toBe('admitted')
  expect(await enter('generate', 'ann')).toBe('admitted')
})
