/** What a route limit does with a call, whatever the framework. */
import { describe, expect, test } from 'vitest'
import type { Limits, RateLimiter } from './limits.ts'
import { MemoryLimiter } from './memory.ts'
import { createRouteLimit, type RouteLimitOptions } from './route-limit.ts'

interface Call {
  readonly user?: string
  readonly ip?: string
  readonly words?: number
}

const make = (limits: Limits, options: RouteLimitOptions<Call> = {}) => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter(limits, () => clock.now)
  return { clock, limiter, admit: createRouteLimit<Call>(limiter, options, ({ ip }) => ip) }
}
const isLetIn = async (admission: Promise<object>) => 'reservation' in (await admission)

test('the headers say how the limits stand, and when to come again', async () => {
  const { admit } = make({ requestsPerMinute: 2, tokensPerMinute: 100 }, { tokens: 75 })

  const first = await admit({ ip: '192.0.2.1' })
  const second = await admit({ ip: '192.0.2.1' })

  expect(first.headers).toEqual({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': '1',
    'x-ratelimit-reset-requests': '30s',
    'x-ratelimit-limit-tokens': '100',
    'x-ratelimit-remaining-tokens': '25',
    'x-ratelimit-reset-tokens': '45s',
  })
  expect(second).toMatchObject({
    headers: { 'x-ratelimit-remaining-requests': '1', 'retry-after': '30', 'retry-after-ms': '30000' },
    refusal: { code: 'rate_limit' },
  })
})

describe('who comes under the limits', () => {
  test('is the address, by default and where nobody is named', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { subject: ({ user }) => user })

    expect(await isLetIn(admit({ ip: '2001:db8::1' }))).toBe(true)
    expect(await isLetIn(admit({ ip: '2001:db8::2' }))).toBe(false)
    expect(await isLetIn(admit({ ip: '2001:db8::2', user: 'ann' }))).toBe(true)
    expect(await isLetIn(admit({ ip: '192.0.2.1', user: 'ann' }))).toBe(false)
    expect(await isLetIn(admit({}))).toBe(true)
    expect(await isLetIn(admit({}))).toBe(false)
  })

  test('can be several, with limits of their own, and found out somewhere else', async () => {
    const { admit } = make(
      { requestsPerMinute: 1 },
      {
        subject: async ({ user = '' }) => [user, { id: 'everybody', limits: { requestsPerMinute: 2 } }],
      },
    )

    const calls = ['ann', 'bob', 'cid'].map((user) => isLetIn(admit({ user })))

    expect(await Promise.all(calls)).toEqual([true, true, false])
  })

  test('can be nobody', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { subject: () => [] })

    expect(await isLetIn(admit({}))).toBe(true)
    expect(await isLetIn(admit({}))).toBe(true)
  })

  test('has the limits of the route where it brings none', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { limits: { requestsPerMinute: 2 } })

    expect([await isLetIn(admit({})), await isLetIn(admit({})), await isLetIn(admit({}))]).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe('what a call costs', () => {
  const options: RouteLimitOptions<Call> = { requests: 0, tokens: async ({ words = 0 }) => words * 2 }

  test('is what a function makes of it', async () => {
    const { admit } = make({ requestsPerMinute: 1, tokensPerMinute: 100 }, options)

    expect(await isLetIn(admit({ words: 30 }))).toBe(true)
    expect(await isLetIn(admit({ words: 30 }))).toBe(false)
    expect(await isLetIn(admit({ words: 20 }))).toBe(true)
  })

  test('is what was expected where the route does not settle it, and what it settles where it does', async () => {
    const { admit } = make({ tokensPerMinute: 100, concurrent: 1 }, options)
    const first = await admit({ words: 50 })
    if (!('reservation' in first)) throw new Error('refused')
    await first.reservation.settle({ requests: 0, tokens: 10 })
    first.finish()

    const second = await admit({ words: 45 })
    if (!('reservation' in second)) throw new Error('refused')
    second.finish()

    expect(await admit({ words: 1 })).toMatchObject({ headers: { 'x-ratelimit-remaining-tokens': '0' } })
  })

  test('that no call can cost is a mistake, of the set-up or of the call', async () => {
    expect(() => make({}, { tokens: -1 })).toThrow('Expected `tokens` to be a whole number')
    await expect(make({}, { tokens: () => Number.NaN }).admit({})).rejects.toThrow(TypeError)
  })
})

test('a limiter that is not there yet is a mistake in the set-up', () => {
  const promise = Promise.resolve() as unknown as RateLimiter

  expect(() => createRouteLimit(promise, {}, () => '')).toThrow('await createRateLimiter()')
})

test('what is wrong with the limiter is thrown, not said to be a limit', async () => {
  const broken: RateLimiter = {
    reserve: async () => Promise.reject(new Error('the database is away')),
    close: async () => {},
  }

  await expect(createRouteLimit(broken, {}, () => '')({})).rejects.toThrow('the database is away')
})
