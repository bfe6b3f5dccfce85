import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { raceAbort, unlessAborted } from './abort.ts'

const never = new Promise<never>(() => {})

test('raceAbort settles like the work and leaves no listener', async () => {
  const { signal } = new AbortController()

  expect(await raceAbort(Promise.resolve(1), signal)).toBe(1)
  await expect(raceAbort(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

test("raceAbort rejects with the signal's reason, also when the signal has aborted before", async () => {
  const controller = new AbortController()
  const raced = raceAbort(never, controller.signal)
  const reason = new Error('cancelled')

  controller.abort(reason)

  await expect(raced).rejects.toBe(reason)
  await expect(raceAbort(never, controller.signal)).rejects.toBe(reason)
})

test('unlessAborted resolves with undefined on abort and passes failures of the work on', async () => {
  const controller = new AbortController()
  const pending = unlessAborted(never, controller.signal)

  await expect(unlessAborted(Promise.reject(new Error('no')), controller.signal)).rejects.toThrow('no')
  controller.abort()

  expect(await pending).toBeUndefined()
})
