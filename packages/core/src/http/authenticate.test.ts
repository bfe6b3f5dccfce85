import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { createAuthenticator } from './authenticate.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const connected = new AbortController().signal

test('by default, `authenticate` may take 10 s', async () => {
  const authenticate = createAuthenticator({ authenticate: () => new Promise<undefined>(() => {}) })
  const failed = vi.fn()
  authenticate({}, connected).catch(failed)

  await vi.advanceTimersByTimeAsync(9_999)
  expect(failed).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)

  expect(failed.mock.lastCall).toMatchObject([{ code: 'unavailable', details: { retryAfterMs: 5_000 } }])
})

test.each([
  ['returns', () => ({ id: 'ann' })],
  ['resolves with', async () => ({ id: 'ann' })],
])('a caller that `authenticate` %s leaves no timer and no listener', async (_, find) => {
  const removed = vi.spyOn(connected, 'removeEventListener')
  const authenticate = createAuthenticator({ authenticate: find })

  expect(await authenticate({}, connected)).toEqual({ id: 'ann' })

  expect(vi.getTimerCount()).toBe(0)
  expect(removed).toHaveBeenCalledOnce()
  removed.mockRestore()
})

test.each([
  [
    'throws',
    () => {
      throw new Error('no session')
    },
  ],
  ['rejects', () => Promise.reject(new Error('no session'))],
])('an error is passed on when `authenticate` %s', async (_, find) => {
  const authenticate = createAuthenticator({ authenticate: find })

  await expect(authenticate({}, connected)).rejects.toThrow('no session')

  expect(vi.getTimerCount()).toBe(0)
})

test('`authenticate` may be a method of the options', async () => {
  const options = {
    authenticateTimeout: '1s' as const,
    authenticate() {
      return { id: this.authenticateTimeout }
    },
  }

  expect(await createAuthenticator(options)({}, connected)).toEqual({ id: '1s' })
})

test('a rejection after the deadline is ignored', async () => {
  let fail = (_error: Error): void => {}
  const authenticate = createAuthenticator({
    authenticate: () => new Promise<undefined>((_resolve, reject) => (fail = reject)),
    authenticateTimeout: 10,
  })
  const failed = vi.fn()
  authenticate({}, connected).catch(failed)

  await vi.advanceTimersByTimeAsync(10)
  fail(new Error('too late'))

  expect(failed.mock.calls).toEqual([[expect.any(LlmError)]])
})

test('a client that has disconnected is not authenticated', async () => {
  const find = vi.fn(() => ({ id: 'ann' }))
  const authenticate = createAuthenticator({ authenticate: find })

  await expect(authenticate({}, AbortSignal.abort())).rejects.toMatchObject({ code: 'timeout' })

  expect(find).not.toHaveBeenCalled()
})

test.each([0, -1, 'soon' as '1s', '900h' as const, Number.NaN])(
  'the time %s is a TypeError',
  (authenticateTimeout) => {
    expect(() => createAuthenticator({ authenticateTimeout })).toThrow(/authenticateTimeout/)
  },
)
