import { expect, test } from 'vitest'
import type { Caller } from '../../accounts/auth/caller.ts'
import { Call } from '../call.ts'
import { QueueStep } from './queue.ts'

/** Enters calls, and records the ids of the callers whose calls have a permit. */
function enterable(step: QueueStep) {
  const inside: string[] = []
  return {
    inside,
    enter: async (caller: Caller, weight = 1): Promise<Call> => {
      const requests = [{ model: 'tiny' }]
      const call = new Call({ kind: 'generate', signal: new AbortController().signal, requests, caller })
      call.weight = weight
      void step.before(call).then(() => inside.push(caller.id))
      await turn()
      return call
    },
    leave: async (call: Call): Promise<void> => {
      step.after(call)
      await turn()
    },
  }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a model may have its own number of permits', async () => {
  const permitsOf = (model: string): number | undefined => (model === 'tiny' ? 2 : undefined)
  const step = new QueueStep({ permits: 1, permitsOf, maxQueued: 20, timeoutMs: Number.POSITIVE_INFINITY })
  const { inside, enter } = enterable(step)

  for (const id of ['a', 'b', 'c']) await enter({ id, tenant: 'team' })

  expect(inside).toEqual(['a', 'b'])
})

test('ten keys of one tenant are one share', async () => {
  const step = new QueueStep({ permits: 4, maxQueued: 20, timeoutMs: Number.POSITIVE_INFINITY })
  const { inside, enter, leave } = enterable(step)
  const greedy: Call[] = []
  for (let key = 0; key < 10; key++) greedy.push(await enter({ id: `key ${key}`, tenant: 'team' }))
  expect(inside).toEqual(['key 0', 'key 1', 'key 2', 'key 3'])

  for (let call = 0; call < 3; call++) await enter({ id: 'calm' })
  expect(inside.slice(4)).toEqual(['calm', 'calm'])
  for (const call of greedy.slice(0, 3)) await leave(call)

  // Now the tenant has less than its share, so its key that has waited longest is next.
  expect(inside.slice(6)).toEqual(['key 4'])
})

test('a tenant of a heavier tier gets more permits', async () => {
  const step = new QueueStep({ permits: 4, maxQueued: 20, timeoutMs: Number.POSITIVE_INFINITY })
  const { inside, enter } = enterable(step)
  for (let call = 0; call < 4; call++) await enter({ id: 'light' })

  for (let call = 0; call < 4; call++) await enter({ id: 'heavy' }, 3)

  expect(inside.slice(4)).toEqual(['heavy', 'heavy', 'heavy'])
})
