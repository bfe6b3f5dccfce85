import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LlmError } from '../../errors.ts'
import { KeyAuthenticator } from './key-authenticator.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const valid = new Map(['ann', 'ben'].map((id) => [`key of ${id}`, { id }]))

/** @param limit wrong keys per minute of one address */
function create(limit: number) {
  const find = vi.fn(async (secrets: readonly string[]) => {
    return new Map([...valid].filter(([secret]) => secrets.includes(secret)))
  })
  const authenticator = new KeyAuthenticator(find, limit)
  const attempt = (secret: string, address = '192.0.2.1') =>
    authenticator.authenticate(secret, address).then(
      ({ id }) => id,
      (error: LlmError) => error.code,
    )
  return { find, attempt }
}

test('keys beyond the limit are looked up together, and the valid ones among them are found', async () => {
  const { find, attempt } = create(2)

  const attempts = ['a', 'b', 'c', 'd', 'key of ann', 'd'].map((secret) => attempt(secret))
  await vi.advanceTimersByTimeAsync(100)

  const [wrong, over] = ['authentication', 'rate_limit']
  expect(await Promise.all(attempts)).toEqual([wrong, wrong, over, over, 'ann', over])
  expect(find.mock.calls).toEqual([[['a']], [['b']], [['c', 'd', 'key of ann']]])
})

test('a thousand wrong keys per second cause ten look-ups, and a known key does not wait for them', async () => {
  const { find, attempt } = create(1)
  await attempt('key of ann')
  await attempt('x')
  find.mockClear()

  for (let index = 0; index < 1_000; index++) {
    attempt(`wrong ${index}`)
    await vi.advanceTimersByTimeAsync(1)
  }

  expect(find).toHaveBeenCalledTimes(10)
  expect(await attempt('key of ann')).toBe('ann')
  expect(find).toHaveBeenLastCalledWith(['key of ann'])
})

test('valid keys do not count, and a key that is no longer valid does', async () => {
  const { attempt } = create(1)
  valid.set('key of gone', { id: 'gone' })
  expect([await attempt('key of ann'), await attempt('key of gone')]).toEqual(['ann', 'gone'])
  valid.delete('key of gone')

  expect(await attempt('key of gone')).toBe('authentication')
  const next = attempt('key of gone')
  await vi.advanceTimersByTimeAsync(100)
  expect(await next).toBe('rate_limit')
})

test('errors of the database do not count', async () => {
  const { find, attempt } = create(1)
  find.mockRejectedValueOnce(new LlmError('unavailable', 'down'))

  expect(await attempt('a')).toBe('unavailable')
  expect(await attempt('a')).toBe('authentication')
})

test('IPv4 addresses and the /64 of IPv6 addresses are counted apart, and so are requests without an address', async () => {
  const { attempt } = create(1)
  const codesOf = async (addresses: readonly string[]) => {
    const codes = addresses.map((address) => attempt('x', address))
    await vi.advanceTimersByTimeAsync(100)
    return new Set(await Promise.all(codes))
  }

  expect(await codesOf(['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8:0:1::1', ''])).toEqual(
    new Set(['authentication']),
  )
  expect(await codesOf(['::ffff:192.0.2.1', '2001:db8::2', '2001:db8:0:1:ffff::', ''])).toEqual(
    new Set(['rate_limit']),
  )
})
