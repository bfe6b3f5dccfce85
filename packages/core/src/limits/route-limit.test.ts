/** What a route limit does with a call, whatever the framework. */
import { describe, expect, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { createRateLimiter } from './create-rate-limiter.ts'
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
    const limits = { tokensPerMinute: 1 }
    expect(() => make(limits, { tokens: -1 })).toThrow('Expected `tokens` to be a whole number')
    await expect(make(limits, { tokens: () => Number.NaN }).admit({})).rejects.toThrow(TypeError)
  })
})

test('a limiter that is not there yet is a mistake in the set-up', () => {
  const promise = Promise.resolve() as unknown as RateLimiter

  expect(() => createRouteLimit(promise, {}, () => '')).toThrow('await createRateLimiter()')
})

describe('routes of one limiter', () => {
  const limiter = () => new MemoryLimiter({ requestsPerMinute: 100 }, () => 0)
  const remaining = async (admission: Promise<{ headers: Readonly<Record<string, string>> }>) =>
    (await admission).headers['x-ratelimit-remaining-requests']
  const from = ({ ip }: Call) => ip

  test('count apart where one has limits of its own', async () => {
    const shared = limiter()
    const time = createRouteLimit<Call>(shared, {}, from)
    const login = createRouteLimit<Call>(shared, { limits: { requestsPerMinute: 5 } }, from)
    const reset = createRouteLimit<Call>(shared, { limits: { requestsPerMinute: 5 } }, from)

    expect(await remaining(login({ ip: '192.0.2.1' }))).toBe('4')
    expect(await remaining(time({ ip: '192.0.2.1' }))).toBe('99')
    expect(await remaining(reset({ ip: '192.0.2.1' }))).toBe('3')
    expect(await remaining(login({ ip: '192.0.2.1' }))).toBe('2')
  })

  test('count by their names, in front of their subjects', async () => {
    const shared = limiter()
    const login = createRouteLimit<Call>(shared, { name: 'login', limits: { requestsPerMinute: 5 } }, from)
    const reset = createRouteLimit<Call>(shared, { name: 'reset', limits: { requestsPerMinute: 5 } }, from)

    expect(await remaining(login({ ip: '192.0.2.1' }))).toBe('4')
    expect(await remaining(reset({ ip: '192.0.2.1' }))).toBe('4')
    const { limits } = await shared.reserve(
      [{ id: 'login ip:192.0.2.1', limits: { requestsPerMinute: 5 } }],
      { requests: 0, tokens: 0 },
    )
    expect(limits).toMatchObject([{ remaining: 4 }])
  })

  test('share a subject that brings its limits with it', async () => {
    const shared = limiter()
    const subject = ({ user = '' }: Call) => ({ id: user, limits: { requestsPerMinute: 3 } })
    const one = createRouteLimit<Call>(shared, { subject, limits: { requestsPerMinute: 5 } }, from)
    const other = createRouteLimit<Call>(shared, { subject }, from)

    expect(await remaining(one({ user: 'ann' }))).toBe('2')
    expect(await remaining(other({ user: 'ann' }))).toBe('1')
    // Nobody is an address, and its limit of 100 is another one.
    expect(await remaining(one({ ip: '192.0.2.1' }))).toBe('2')
    expect(await remaining(createRouteLimit<Call>(shared, {}, from)({ ip: '192.0.2.1' }))).toBe('99')
  })
})

describe('what a subject may be', () => {
  const by = (who: unknown) => {
    const { admit } = make({ requestsPerMinute: 1 }, { subject: () => who as string })
    return admit
  }

  test.each([['', null, undefined, { id: '' }]].flat())('is the address where it is %j', async (who) => {
    const admit = by(who)

    expect(await isLetIn(admit({ ip: '192.0.2.1' }))).toBe(true)
    expect(await isLetIn(admit({ ip: '192.0.2.2' }))).toBe(true)
    expect(await isLetIn(admit({ ip: '192.0.2.2' }))).toBe(false)
  })

  test('is a number, such as the id of a row', async () => {
    const { admit, limiter } = make({ requestsPerMinute: 1 }, { subject: () => 42 })

    expect(await isLetIn(admit({}))).toBe(true)
    await expect(limiter.reserve([{ id: '42' }], { requests: 1, tokens: 0 })).rejects.toThrow(LlmError)
  })

  test.each([[Number.NaN, {}, true, { id: {} }]].flat())('is nothing else: %j', async (who) => {
    await expect(by(who)({})).rejects.toThrow('Expected `subject` to say a text, a number or { id, limits }')
  })

  test('is who has no right to ask, and hears so', async () => {
    const subject = () => {
      throw new LlmError('authentication', 'No API key is given.')
    }
    const { admit } = make({ requestsPerMinute: 1 }, { subject })

    expect(await admit({})).toMatchObject({ refusal: { status: 401, message: 'No API key is given.' } })
  })
})

describe('a misspelt option is a mistake in the set-up', () => {
  test.each([
    [{ limit: 5 }, 'Unknown option `limit`'],
    [{ key: () => 'ann' }, 'Unknown option `key`'],
    [{ limits: { rpm: 1 } }, 'Unknown option `limits.rpm`'],
    [{ subject: 'ann' }, 'Expected `subject` to be a function of the request'],
    [{ name: '' }, 'Expected `name` to be a text'],
    [{ requests: '1' }, 'Expected `requests` to be a whole number'],
    [{ onError: 'open' }, "Expected `onError` to be 'refuse', 'admit' or a function"],
  ])('%j', (options, message) => {
    expect(() => make({ requestsPerMinute: 1 }, options as never)).toThrow(message)
  })

  test.each([
    [{ requestsPerMinute: 1 }, 'Unknown option `requestsPerMinute`'],
    [{ limits: { rpm: 1 } }, 'Unknown option `limits.rpm`'],
  ])('of the limiter: %j', async (options, message) => {
    await expect(createRateLimiter(options as never)).rejects.toThrow(message)
  })

  test('and so is what could never limit anybody', async () => {
    const none = await createRateLimiter()

    expect(() => createRouteLimit(none, {}, () => '')).toThrow('neither the route nor its limiter has any')
    expect(() => createRouteLimit(none, { limits: {} }, () => '')).toThrow(TypeError)
    createRouteLimit(none, { subject: () => ({ id: 'ann', limits: { concurrent: 1 } }) }, () => '')
  })
})

describe('while the limiter fails', () => {
  const away = new Error('the database is away')
  const broken: RateLimiter = { reserve: () => Promise.reject(away), status: async () => [] }

  test('calls are refused with when to try again, and why is for the app alone', async () => {
    const admission = await createRouteLimit(broken, {}, () => '')({})

    expect(admission).toMatchObject({
      headers: { 'retry-after': '5' },
      refusal: { code: 'overloaded', status: 503, cause: away },
    })
    expect('refusal' in admission && admission.refusal.message).not.toContain('database')
  })

  test('calls are let in where the app wants it, without a limit', async () => {
    const admission = await createRouteLimit(broken, { onError: 'admit' }, () => '')({})
    if (!('reservation' in admission)) throw new Error('refused')

    expect(admission.headers).toEqual({})
    await admission.reservation.settle({ requests: 1, tokens: 7 })
    admission.finish()
  })

  test('a function hears of it and decides', async () => {
    const onError = vi.fn(() => 'admit' as const)
    const call = { user: 'ann' }

    const admission = await createRouteLimit<Call>(broken, { onError }, () => '')(call)

    expect('reservation' in admission).toBe(true)
    expect(onError).toHaveBeenCalledExactlyOnceWith(away, call)
  })
})
