/** Route limits, for any framework. */
import { describe, expect, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { createRateLimiter } from './create-rate-limiter.ts'
import type { Limits, RateLimiter } from './limits.ts'
import { MemoryLimiter } from './memory.ts'
import { createRouteLimit } from './route-limit.ts'
import type { RouteLimitOptions } from './route-limit-options.ts'

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
const isAdmitted = async (admission: Promise<object>) => 'reservation' in (await admission)

test('the headers report the limits and when to retry', async () => {
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
    ratelimit: '"2-in-1min"; r=1; t=30, "100-tokens-in-1min"; r=25; t=45',
    'ratelimit-policy': '"2-in-1min"; q=2; w=60, "100-tokens-in-1min"; q=100; w=60',
  })
  expect(second).toMatchObject({
    headers: { 'x-ratelimit-remaining-requests': '1', 'retry-after': '30', 'retry-after-ms': '30000' },
    refusal: { code: 'rate_limit' },
  })
})

describe('the rate limit key', () => {
  test('is the address, by default and for a request without a user', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { keyGenerator: ({ user }) => user })

    expect(await isAdmitted(admit({ ip: '2001:db8::1' }))).toBe(true)
    expect(await isAdmitted(admit({ ip: '2001:db8::2' }))).toBe(false)
    expect(await isAdmitted(admit({ ip: '2001:db8::2', user: 'ann' }))).toBe(true)
    expect(await isAdmitted(admit({ ip: '192.0.2.1', user: 'ann' }))).toBe(false)
    expect(await isAdmitted(admit({}))).toBe(true)
    expect(await isAdmitted(admit({}))).toBe(false)
  })

  test('can be a list, with own limits, and asynchronous', async () => {
    const { admit } = make(
      { requestsPerMinute: 1 },
      {
        keyGenerator: async ({ user = '' }) => [user, { id: 'everybody', limits: { requestsPerMinute: 2 } }],
      },
    )

    const calls = ['ann', 'bob', 'cid'].map((user) => isAdmitted(admit({ user })))

    expect(await Promise.all(calls)).toEqual([true, true, false])
  })

  test('can have a label, which follows the limit in the error', async () => {
    const project = { id: 'p', limits: { tokensPerDay: 1 }, label: 'per project' }
    const { admit } = make({}, { tokens: 1, keyGenerator: () => project })

    await admit({})
    const { headers, refusal } = (await admit({})) as { headers: object; refusal?: LlmError }

    expect(refusal?.message).toContain('limit of 1 token per day per project.')
    expect(headers).toMatchObject({ 'retry-after': '86400', 'x-should-retry': 'false' })
  })

  test('can be an empty list, which is not limited', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { keyGenerator: () => [] })

    expect(await isAdmitted(admit({}))).toBe(true)
    expect(await isAdmitted(admit({}))).toBe(true)
  })

  test('without limits has the limits of the route', async () => {
    const { admit } = make({ requestsPerMinute: 1 }, { limits: { requestsPerMinute: 2 } })

    expect([await isAdmitted(admit({})), await isAdmitted(admit({})), await isAdmitted(admit({}))]).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe('the cost of a call', () => {
  const options: RouteLimitOptions<Call> = { requests: 0, tokens: async ({ words = 0 }) => words * 2 }

  test('can be a function of the request', async () => {
    const { admit } = make({ requestsPerMinute: 1, tokensPerMinute: 100 }, options)

    expect(await isAdmitted(admit({ words: 30 }))).toBe(true)
    expect(await isAdmitted(admit({ words: 30 }))).toBe(false)
    expect(await isAdmitted(admit({ words: 20 }))).toBe(true)
  })

  test('is the reserved cost, or the actual cost that the route settles', async () => {
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

  test('must be a whole number, in options and from functions', async () => {
    const limits = { tokensPerMinute: 1 }
    expect(() => make(limits, { tokens: -1 })).toThrow('Expected `tokens` to be a whole number')
    await expect(make(limits, { tokens: () => Number.NaN }).admit({})).rejects.toThrow(TypeError)
  })
})

test('a promise instead of a limiter is a TypeError', () => {
  const promise = Promise.resolve() as unknown as RateLimiter

  expect(() => createRouteLimit(promise, {}, () => '')).toThrow('await createRateLimiter()')
})

describe('routes of one limiter', () => {
  const limiter = () => new MemoryLimiter({ requestsPerMinute: 100 }, () => 0)
  const remaining = async (admission: Promise<{ headers: Readonly<Record<string, string>> }>) =>
    (await admission).headers['x-ratelimit-remaining-requests']
  const from = ({ ip }: Call) => ip

  test('count separately when one has own limits', async () => {
    const shared = limiter()
    const time = createRouteLimit<Call>(shared, {}, from)
    const login = createRouteLimit<Call>(shared, { limits: { requestsPerMinute: 5 } }, from)
    const reset = createRouteLimit<Call>(shared, { limits: { requestsPerMinute: 5 } }, from)

    expect(await remaining(login({ ip: '192.0.2.1' }))).toBe('4')
    expect(await remaining(time({ ip: '192.0.2.1' }))).toBe('99')
    expect(await remaining(reset({ ip: '192.0.2.1' }))).toBe('3')
    expect(await remaining(login({ ip: '192.0.2.1' }))).toBe('2')
  })

  test('count separately by name, which is prepended to the keys', async () => {
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

  test('share a key with own limits', async () => {
    const shared = limiter()
    const keyGenerator = ({ user = '' }: Call) => ({ id: user, limits: { requestsPerMinute: 3 } })
    const one = createRouteLimit<Call>(shared, { keyGenerator, limits: { requestsPerMinute: 5 } }, from)
    const other = createRouteLimit<Call>(shared, { keyGenerator }, from)

    expect(await remaining(one({ user: 'ann' }))).toBe('2')
    expect(await remaining(other({ user: 'ann' }))).toBe('1')
    // A request without a user counts by address, where the limit of 100 is separate.
    expect(await remaining(one({ ip: '192.0.2.1' }))).toBe('2')
    expect(await remaining(createRouteLimit<Call>(shared, {}, from)({ ip: '192.0.2.1' }))).toBe('99')
  })
})

describe('a key', () => {
  const by = (who: unknown) => {
    const { admit } = make({ requestsPerMinute: 1 }, { keyGenerator: () => who as string })
    return admit
  }

  test.each([['', null, undefined, { id: '' }]].flat())('of %j is replaced by the address', async (who) => {
    const admit = by(who)

    expect(await isAdmitted(admit({ ip: '192.0.2.1' }))).toBe(true)
    expect(await isAdmitted(admit({ ip: '192.0.2.2' }))).toBe(true)
    expect(await isAdmitted(admit({ ip: '192.0.2.2' }))).toBe(false)
  })

  test('can be a number, such as the id of a row', async () => {
    const { admit, limiter } = make({ requestsPerMinute: 1 }, { keyGenerator: () => 42 })

    expect(await isAdmitted(admit({}))).toBe(true)
    await expect(limiter.reserve([{ id: '42' }], { requests: 1, tokens: 0 })).rejects.toThrow(LlmError)
  })

  test.each([[Number.NaN, {}, true, { id: {} }]].flat())('cannot be %j', async (who) => {
    await expect(by(who)({})).rejects.toThrow(
      'Expected `keyGenerator` to return a text, a number or { id, limits }',
    )
  })

  test('can be replaced by an LlmError, which rejects the request', async () => {
    const keyGenerator = () => {
      throw new LlmError('authentication', 'No API key is given.')
    }
    const { admit } = make({ requestsPerMinute: 1 }, { keyGenerator })

    expect(await admit({})).toMatchObject({ refusal: { status: 401, message: 'No API key is given.' } })
  })
})

describe('a wrong or misspelt option is a TypeError', () => {
  test.each([
    [{ rpm: 5 }, 'Unknown option `rpm`'],
    [{ subject: () => 'ann' }, 'Unknown option `subject`, expected `keyGenerator`'],
    [{ onError: 'admit' }, 'Unknown option `onError`, expected `passOnStoreError`'],
    [{ max: 5 }, 'Unknown option `max`, expected `limit`'],
    [{ skip: true }, 'Expected `skip` to be a function of the request'],
    [{ limit: 0 }, 'Expected `limit` to be a whole number from 1'],
    [{ limit: 5, windowMs: 0.5 }, 'Expected `windowMs` to be a whole number from 1'],
    [{ limit: 1e6, windowMs: 31_622_400_000 }, 'Expected `limit` to be a whole number from 1 to 189738,'],
    [{ windowMs: 1_000 }, 'Expected `limit` beside `windowMs`'],
    [
      { limits: { requestsPerMinute: 1 }, limit: 1 },
      'Expected `limits`, or `limit` with `windowMs`, got both',
    ],
    [{ ipv6Subnet: 31 }, 'Expected `ipv6Subnet` to be a whole number from 32 to 128'],
    [{ ipv6Subnet: false }, 'Expected `ipv6Subnet` to be a whole number from 32 to 128'],
    [{ key: () => 'ann' }, 'Unknown option `key`'],
    [{ limits: { rpm: 1 } }, 'Unknown option `limits.rpm`'],
    [{ keyGenerator: 'ann' }, 'Expected `keyGenerator` to be a function of the request'],
    [{ name: '' }, 'Expected `name` to be a text'],
    [{ requests: '1' }, 'Expected `requests` to be a whole number'],
    [{ passOnStoreError: 'admit' }, 'Expected `passOnStoreError` to be true, false or a function'],
  ])('%j', (options, message) => {
    expect(() => make({ requestsPerMinute: 1 }, options as never)).toThrow(message)
  })

  test.each([
    [{ requestsPerMinute: 1 }, 'Unknown option `requestsPerMinute`'],
    [{ limits: { rpm: 1 } }, 'Unknown option `limits.rpm`'],
  ])('of the limiter: %j', async (options, message) => {
    await expect(createRateLimiter(options as never)).rejects.toThrow(message)
  })

  test('a route without any limit is a TypeError, too', async () => {
    const none = await createRateLimiter()

    expect(() => createRouteLimit(none, {}, () => '')).toThrow('neither the route nor its limiter has any')
    expect(() => createRouteLimit(none, { limits: {} }, () => '')).toThrow(TypeError)
    createRouteLimit(none, { keyGenerator: () => ({ id: 'ann', limits: { concurrent: 1 } }) }, () => '')
  })
})

describe('`limit` with `windowMs`', () => {
  const quarter = { limit: 2, windowMs: 900_000 }

  test('is a bucket that refills over the window', async () => {
    const { admit, clock } = make({}, quarter)
    const call = () => admit({ ip: '192.0.2.1' })
    const statuses = [await isAdmitted(call()), await isAdmitted(call()), await isAdmitted(call())]

    expect(statuses).toEqual([true, true, false])
    clock.now += 449_999
    expect(await isAdmitted(call())).toBe(false)
    clock.now += 1
    expect(await isAdmitted(call())).toBe(true)
  })

  test('admits up to twice the limit in one window after a pause', async () => {
    const { admit, clock } = make({}, { limit: 10, windowMs: 1_000 })
    let admitted = 0

    for (; clock.now < 1_000; clock.now += 50) if (await isAdmitted(admit({}))) admitted++

    expect(admitted).toBe(19)
  })

  test('is reported in headers and in the error', async () => {
    const { admit } = make({}, { ...quarter, requests: 2 })
    await admit({})

    expect(await admit({})).toMatchObject({
      headers: {
        'x-ratelimit-limit-requests': '2',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '15m0s',
        ratelimit: '"2-in-15min"; r=0; t=900',
        'ratelimit-policy': '"2-in-15min"; q=2; w=900',
        'retry-after': '900',
      },
      refusal: {
        message: 'This request would exceed the limit of 2 requests per 15 minutes. Try again in 900 s.',
      },
    })
  })

  test('has a window of a minute by default, and then shares its counts with `limits`', async () => {
    const { admit, limiter } = make({}, { limit: 2 })
    const other = createRouteLimit<Call>(limiter, { limits: { requestsPerMinute: 2 } }, ({ ip }) => ip)

    expect(await isAdmitted(admit({}))).toBe(true)
    expect(await isAdmitted(other({}))).toBe(true)
    expect(await isAdmitted(admit({}))).toBe(false)
  })

  test('is counted separately for each window', async () => {
    const { admit, limiter } = make({}, quarter)
    const other = createRouteLimit<Call>(limiter, { limit: 2, windowMs: 86_400_000 }, ({ ip }) => ip)

    await admit({})
    await admit({})

    expect(await other({})).toMatchObject({ headers: { ratelimit: '"2-in-1day"; r=1; t=43200' } })
  })

  test('can come with a key', async () => {
    const keyGenerator = ({ user = '' }: Call) => ({ id: user, limits: { limit: 1, windowMs: 3_600_000 } })
    const { admit } = make({ requestsPerMinute: 100 }, { keyGenerator })

    expect(await isAdmitted(admit({ user: 'ann' }))).toBe(true)
    expect(await isAdmitted(admit({ user: 'ann' }))).toBe(false)
    expect(await isAdmitted(admit({ user: 'bob' }))).toBe(true)
  })
})

describe('a skipped request', () => {
  test.each([
    ['at once', () => true],
    ['later', async () => true],
  ])('is not limited: `skip` answers %s', async (_when, skip) => {
    const keyGenerator = vi.fn(() => 'ann')
    const { admit, limiter } = make({ requestsPerMinute: 1 }, { skip, keyGenerator })

    for (let call = 0; call < 3; call++) {
      const admission = await admit({})
      if (!('reservation' in admission)) throw new Error('rejected')
      expect(admission.headers).toEqual({})
      await admission.reservation.take({ requests: 0, tokens: 5 })
      await admission.reservation.settle({ requests: 1, tokens: 5 })
      admission.finish()
    }

    expect(keyGenerator).not.toHaveBeenCalled()
    expect(limiter.size).toBe(0)
  })

  test('does not change the limits of other requests', async () => {
    const skip = ({ user }: Call) => user === 'health'
    const { admit } = make({ requestsPerMinute: 1 }, { skip })

    expect(await isAdmitted(admit({}))).toBe(true)
    expect(await isAdmitted(admit({ user: 'health' }))).toBe(true)
    expect(await isAdmitted(admit({}))).toBe(false)
  })

  test('does not exist if `skip` throws', async () => {
    const error = new Error('no such user')
    const { admit } = make({ requestsPerMinute: 1 }, { skip: () => Promise.reject(error) })

    await expect(admit({})).rejects.toBe(error)
  })
})

test('`ipv6Subnet` changes how many bits of an address are one client', async () => {
  const { admit } = make({ requestsPerMinute: 1 }, { ipv6Subnet: 56 })

  expect(await isAdmitted(admit({ ip: '2001:db8:0:a1::1' }))).toBe(true)
  expect(await isAdmitted(admit({ ip: '2001:db8:0:af::1' }))).toBe(false)
  expect(await isAdmitted(admit({ ip: '2001:db8:0:1a1::1' }))).toBe(true)
})

describe('while the limiter fails', () => {
  const away = new Error('the database is away')
  const broken: RateLimiter = { reserve: () => Promise.reject(away), status: async () => [] }

  test('calls are rejected with the time to retry, and clients do not see the cause', async () => {
    const admission = await createRouteLimit(broken, {}, () => '')({})

    expect(admission).toMatchObject({
      headers: { 'retry-after': '5' },
      refusal: { code: 'overloaded', status: 503, cause: away },
    })
    expect('refusal' in admission && admission.refusal.message).not.toContain('database')
  })

  test('calls are admitted without a limit with `passOnStoreError: true`', async () => {
    const admission = await createRouteLimit(broken, { passOnStoreError: true }, () => '')({})
    if (!('reservation' in admission)) throw new Error('refused')

    expect(admission.headers).toEqual({})
    await admission.reservation.settle({ requests: 1, tokens: 7 })
    admission.finish()
  })

  test.each<unknown>(['refuse', 'admit', 1, undefined])(
    'a function that returns %j admits no call',
    async (answer) => {
      const options = { passOnStoreError: () => answer as boolean }

      expect(await createRouteLimit(broken, options, () => '')({})).toMatchObject({
        refusal: { status: 503 },
      })
    },
  )

  test('a function gets the cause and decides', async () => {
    const passOnStoreError = vi.fn(() => true)
    const call = { user: 'ann' }

    const admission = await createRouteLimit<Call>(broken, { passOnStoreError }, () => '')(call)

    expect('reservation' in admission).toBe(true)
    expect(passOnStoreError).toHaveBeenCalledExactlyOnceWith(away, call)
  })
})
