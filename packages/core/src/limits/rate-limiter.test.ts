/** The rate limiter, with each store. */
import { beforeEach, describe, expect, test } from 'vitest'
import { type Clock, stores } from '../../../../test/support/limiters.ts'
import { LlmError } from '../errors.ts'
import type { ClosableRateLimiter, Cost, Limits, Reservation, Subject } from './limits.ts'

const one: Cost = { requests: 1, tokens: 0 }
const tokens = (tokens: number): Cost => ({ requests: 1, tokens })
const minute = 60_000

describe.each(stores())('limits in $name', ({ limiter: make }) => {
  let clock: Clock
  let limiter: ClosableRateLimiter

  beforeEach(async () => {
    clock = { now: 1_000 }
    limiter = await make(clock)
    return () => limiter.close()
  })

  const ann = (limits: Limits): Subject => ({ id: 'ann', limits })
  const refusalOf = async (reserved: Promise<Reservation>): Promise<LlmError> => {
    const error = await reserved.then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(error).toBeInstanceOf(LlmError)
    return error as LlmError
  }

  test('a full bucket admits the limit at once, and then call by call', async () => {
    const subjects = [ann({ requestsPerMinute: 3 })]
    for (const remaining of [2, 1, 0]) {
      const { limits } = await limiter.reserve(subjects, one)
      expect(limits).toEqual([{ name: 'requests', limit: 3, remaining, resetMs: (3 - remaining) * 20_000 }])
    }

    const refusal = await refusalOf(limiter.reserve(subjects, one))

    expect(refusal).toMatchObject({
      code: 'rate_limit',
      message: 'This request would exceed the limit of 3 requests per minute. Try again in 20 s.',
      details: {
        retryAfterMs: 20_000,
        limits: [{ name: 'requests', limit: 3, remaining: 0, resetMs: minute }],
      },
    })
    clock.now += 19_999
    await refusalOf(limiter.reserve(subjects, one))
    clock.now += 1
    await limiter.reserve(subjects, one)
    await refusalOf(limiter.reserve(subjects, one))
  })

  test('the status takes nothing, and reports the subject with the least remaining', async () => {
    const subjects = [
      ann({ requestsPerMinute: 3, tokensPerMinute: 600 }),
      { id: 'all', limits: { requestsPerMinute: 2 } },
    ]
    const full = [
      { name: 'requests', limit: 2, remaining: 2, resetMs: 0 },
      { name: 'tokens', limit: 600, remaining: 600, resetMs: 0 },
    ]
    expect([await limiter.status(subjects), await limiter.status(subjects)]).toEqual([full, full])
    await limiter.reserve(subjects, { requests: 1, tokens: 60 })

    const used = [
      { name: 'requests', limit: 2, remaining: 1, resetMs: 30_000 },
      { name: 'tokens', limit: 600, remaining: 540, resetMs: 6_000 },
    ]
    expect([await limiter.status(subjects), await limiter.status(subjects)]).toEqual([used, used])
    expect(await limiter.status([ann({ concurrent: 1 })])).toEqual([])
    clock.now += minute
    expect(await limiter.status(subjects)).toEqual(full)
  })

  test('a rejected call takes nothing from any subject', async () => {
    const [strict, lax] = [
      { id: 'strict', limits: { requestsPerMinute: 1 } },
      { id: 'lax', limits: { requestsPerMinute: 2, tokensPerMinute: 100, concurrent: 2 } },
    ]
    await limiter.reserve([strict], one)
    for (let tries = 0; tries < 10; tries++) await refusalOf(limiter.reserve([lax, strict], tokens(100)))

    const { limits } = await limiter.reserve([lax], tokens(100))

    expect(limits).toEqual([
      { name: 'requests', limit: 2, remaining: 1, resetMs: 30_000 },
      { name: 'tokens', limit: 100, remaining: 0, resetMs: minute },
    ])
  })

  test('settling returns unused units, or takes missing units into debt', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000 })]
    const first = await limiter.reserve(subjects, tokens(900))
    await first.settle(tokens(100))
    const second = await limiter.reserve(subjects, tokens(900))
    await second.settle(tokens(1_500))

    const refusal = await refusalOf(limiter.reserve(subjects, tokens(1)))

    // A debt of 600 tokens and one more token, at 1,000 tokens per minute.
    expect(refusal.details.retryAfterMs).toBe(36_060)
  })

  test('a reservation is settled once', async () => {
    const subjects = [ann({ tokensPerMinute: 100 })]
    const reservation = await limiter.reserve(subjects, tokens(100))
    await reservation.settle(tokens(40))
    await reservation.settle(tokens(0))
    await reservation.release()

    const { limits } = await limiter.reserve(subjects, tokens(0))

    expect(limits).toMatchObject([{ remaining: 60 }])
  })

  test('taking more counts at once, into debt if necessary, and is settled with the rest', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000 })]
    const long = await limiter.reserve(subjects, tokens(400))
    await long.take({ requests: 0, tokens: 500 })
    const { limits } = await limiter.reserve(subjects, tokens(0))
    expect(limits).toMatchObject([{ remaining: 100 }])

    await long.take({ requests: 0, tokens: 500 })
    const inDebt = await refusalOf(limiter.reserve(subjects, tokens(1)))
    await long.settle(tokens(1_350))
    const settled = await refusalOf(limiter.reserve(subjects, tokens(1)))

    expect(inDebt.details.retryAfterMs).toBe(401 * 60)
    expect(settled.details.retryAfterMs).toBe(351 * 60)
  })

  test('settling waits for units that the call is still taking', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000 })]
    const long = await limiter.reserve(subjects, tokens(100))

    await Promise.all([
      long.take({ requests: 0, tokens: 100 }),
      long.take({ requests: 0, tokens: 100 }),
      long.settle(tokens(250)),
    ])
    await long.take({ requests: 0, tokens: 500 })

    const { limits } = await limiter.reserve(subjects, tokens(0))
    expect(limits).toMatchObject([{ remaining: 750 }])
  })

  test('settling without a cost keeps what the call took', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000, concurrent: 1 })]
    const long = await limiter.reserve(subjects, tokens(100))
    await long.take({ requests: 0, tokens: 200 })
    await long.settle()

    const { limits } = await limiter.reserve(subjects, tokens(0))

    expect(limits).toMatchObject([{ remaining: 700 }])
  })

  test('taking more takes from all subjects, and settling returns to all', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000 }), { id: 'model', limits: { tokensPerMinute: 500 } }]
    const long = await limiter.reserve(subjects, tokens(100))
    await long.take({ requests: 0, tokens: 300 })
    const [ofAnn, ofModel] = [[subjects[0] as Subject], [subjects[1] as Subject]]

    expect((await limiter.reserve(ofAnn, tokens(0))).limits).toMatchObject([{ remaining: 600 }])
    expect((await limiter.reserve(ofModel, tokens(0))).limits).toMatchObject([{ remaining: 100 }])
    await long.release()

    expect((await limiter.reserve(ofAnn, tokens(0))).limits).toMatchObject([{ remaining: 1_000 }])
    expect((await limiter.reserve(ofModel, tokens(0))).limits).toMatchObject([{ remaining: 500 }])
  })

  test('a released reservation takes nothing', async () => {
    const subjects = [ann({ requestsPerMinute: 1, tokensPerMinute: 100, concurrent: 1 })]
    await (await limiter.reserve(subjects, tokens(100))).release()

    const { limits } = await limiter.reserve(subjects, tokens(100))

    expect(limits).toMatchObject([{ remaining: 0 }, { remaining: 0 }])
  })

  test('returned units do not fill a bucket beyond its limit', async () => {
    const subjects = [ann({ tokensPerMinute: 100 })]
    const reservation = await limiter.reserve(subjects, tokens(100))
    clock.now += minute
    await reservation.release()

    const { limits } = await limiter.reserve(subjects, tokens(100))

    expect(limits).toMatchObject([{ remaining: 0 }])
  })

  test('a cost above the bucket is admitted when the bucket is full, and leaves a debt', async () => {
    const subjects = [ann({ tokensPerMinute: 100 })]
    await limiter.reserve(subjects, tokens(150))

    const refusal = await refusalOf(limiter.reserve(subjects, tokens(150)))

    expect(refusal.details.retryAfterMs).toBe(90_000)
    clock.now += 90_000
    await limiter.reserve(subjects, tokens(150))
  })

  test('a concurrency limit rejects calls until one ends', async () => {
    const subjects = [ann({ concurrent: 2 })]
    const first = await limiter.reserve(subjects, one)
    await limiter.reserve(subjects, one)

    const refusal = await refusalOf(limiter.reserve(subjects, one))
    await first.settle(one)
    await limiter.reserve(subjects, one)

    expect(refusal).toMatchObject({
      message: 'This request would exceed the limit of 2 requests at the same time. Try again in 1 s.',
      details: { retryAfterMs: 1_000, limits: [] },
    })
    await refusalOf(limiter.reserve(subjects, one))
  })

  test('if several limits reject a call, the longest wait counts', async () => {
    const subjects = [
      { id: 'key', limits: { requestsPerMinute: 6, tokensPerMinute: 1_000 } },
      { id: 'tier', limits: { requestsPerMinute: 2 } },
    ]
    for (const cost of [tokens(1_000), tokens(0)]) await limiter.reserve(subjects, cost)

    // The tier admits a request after 30 s, and the key admits 600 tokens after 36 s.
    const byTokens = await refusalOf(limiter.reserve(subjects, tokens(600)))
    const byRequests = await refusalOf(limiter.reserve(subjects, tokens(400)))

    expect(byTokens).toMatchObject({
      message: 'This request would exceed the limit of 1000 tokens per minute. Try again in 36 s.',
      details: { retryAfterMs: 36_000, exceeded: 'tokens' },
    })
    expect(byRequests).toMatchObject({
      message: 'This request would exceed the limit of 2 requests per minute. Try again in 30 s.',
      details: { retryAfterMs: 30_000, exceeded: 'requests' },
    })
    clock.now += 35_999
    await refusalOf(limiter.reserve(subjects, tokens(600)))
    clock.now += 1
    await limiter.reserve(subjects, tokens(600))
  })

  test('a bucket that rejects for a moment does not hide the concurrency limit', async () => {
    const subjects = [ann({ requestsPerMinute: 600, concurrent: 1 })]
    await limiter.reserve(subjects, { requests: 600, tokens: 0 })

    const now = await refusalOf(limiter.reserve(subjects, one))
    const many = await refusalOf(limiter.reserve(subjects, { requests: 60, tokens: 0 }))

    expect(now).toMatchObject({
      message: 'This request would exceed the limit of 1 request at the same time. Try again in 1 s.',
      details: { retryAfterMs: 1_000, limits: [{ name: 'requests', remaining: 0 }] },
    })
    expect(many.details).toMatchObject({ retryAfterMs: 6_000, exceeded: 'requests' })
  })

  test('the status of several subjects is that of the subject with the least remaining', async () => {
    const { limits } = await limiter.reserve(
      [
        { id: 'key', limits: { requestsPerMinute: 10, tokensPerMinute: 50 } },
        { id: 'tier', limits: { requestsPerMinute: 5, tokensPerMinute: 500 } },
      ],
      tokens(10),
    )

    expect(limits).toMatchObject([
      { name: 'requests', limit: 5, remaining: 4 },
      { name: 'tokens', limit: 50, remaining: 40 },
    ])
  })

  test('a clock that is set back a day blocks no subject for a day', async () => {
    const subjects = [ann({ requestsPerMinute: 60 })]
    clock.now = 10 * 86_400_000
    await limiter.reserve(subjects, { requests: 60, tokens: 0 })
    clock.now -= 86_400_000

    const refusal = await refusalOf(limiter.reserve(subjects, one))
    clock.now += 1_000

    expect(refusal.details.retryAfterMs).toBe(1_000)
    await limiter.reserve(subjects, one)
    await refusalOf(limiter.reserve(subjects, one))
  })

  test('subjects without limits get the limits of the limiter', async () => {
    const own = await make(clock, { requestsPerMinute: 1 })
    await own.reserve([{ id: 'ann' }, { id: 'bob', limits: {} }], one)

    await refusalOf(own.reserve([{ id: 'ann' }], one))
    await own.reserve([{ id: 'bob', limits: {} }], one)
    await own.close()
  })

  test('without limits, every call is admitted', async () => {
    const { limits } = await limiter.reserve([], one)
    const unlimited = await limiter.reserve([{ id: 'ann' }], one)

    expect([limits, unlimited.limits]).toEqual([[], []])
    await unlimited.settle(one)
  })

  test.each(['quote \' and " and ?', 'nul \0', '\ud800', 'x'.repeat(1_000_000), '', '__proto__'])(
    'a subject may have any name: %j'.slice(0, 40),
    async (id) => {
      const subjects = [{ id, limits: { requestsPerMinute: 1 } }]
      await limiter.reserve(subjects, one)

      await refusalOf(limiter.reserve(subjects, one))
      await limiter.reserve([{ id: `${id}!`, limits: { requestsPerMinute: 1 } }], one)
    },
  )

  test('a limit with a window refills over the window, apart from the limits per minute', async () => {
    const windowed: Subject = { id: 'ann', limits: { limit: 2, windowMs: 15 * minute } }
    await limiter.reserve([windowed], { requests: 2, tokens: 0 })

    const refusal = await refusalOf(limiter.reserve([windowed], one))

    expect(refusal).toMatchObject({
      message: 'This request would exceed the limit of 2 requests per 15 minutes. Try again in 450 s.',
      details: { retryAfterMs: 450_000, limits: [{ limit: 2, windowMs: 15 * minute, remaining: 0 }] },
    })
    expect(await limiter.status([ann({ requestsPerMinute: 2 })])).toMatchObject([{ remaining: 2 }])
    clock.now += 450_000
    await limiter.reserve([windowed], one)
    expect(await limiter.status([windowed])).toEqual([
      { name: 'requests', limit: 2, remaining: 0, resetMs: 15 * minute, windowMs: 15 * minute },
    ])
  })

  test('tokens per day have a bucket apart from those per minute, and the largest limit is exact', async () => {
    const subjects = [ann({ tokensPerMinute: 1_000, tokensPerDay: 100_000_000 })]
    const first = await limiter.reserve(subjects, tokens(900))
    await first.take({ requests: 0, tokens: 50 })
    await first.settle(tokens(400))

    expect(await limiter.status(subjects)).toEqual([
      { name: 'tokens', limit: 1_000, remaining: 600, resetMs: 24_000 },
      { name: 'tokens', limit: 100_000_000, remaining: 99_999_600, resetMs: 346, windowMs: 1_440 * minute },
    ])
    clock.now += 24_000
    await limiter.reserve(subjects, tokens(1_000))
    const perMinute = await refusalOf(limiter.reserve(subjects, tokens(1)))
    expect(perMinute.message).toContain('limit of 1000 tokens per minute')
  })

  test('tokens per day reject calls until enough of the day has passed, and debts are paid back', async () => {
    const subjects = [ann({ tokensPerDay: 1_000 })]
    await (await limiter.reserve(subjects, tokens(100))).settle(tokens(1_500))

    const refusal = await refusalOf(limiter.reserve(subjects, tokens(100)))

    expect(refusal).toMatchObject({
      message: 'This request would exceed the limit of 1000 tokens per day. Try again in 51840 s.',
      details: { retryAfterMs: 51_840_000, exceeded: 'tokens' },
    })
    clock.now += 51_839_999
    await refusalOf(limiter.reserve(subjects, tokens(100)))
    clock.now += 1
    await limiter.reserve(subjects, tokens(100))
  })

  test('the error contains the label of the subject', async () => {
    const labelled = (limits: Limits) => [{ id: 'user', limits, label: 'per end user' }]
    for (const limits of [{ requestsPerMinute: 1 }, { concurrent: 1 }])
      await limiter.reserve(labelled(limits), one)

    const perMinute = await refusalOf(limiter.reserve(labelled({ requestsPerMinute: 1 }), one))
    const concurrent = await refusalOf(limiter.reserve(labelled({ concurrent: 1 }), one))

    expect(perMinute.message).toContain('limit of 1 request per minute per end user.')
    expect(concurrent.message).toContain('limit of 1 request at the same time per end user.')
  })

  test('the error names the window in words', async () => {
    for (const [windowMs, words] of [
      [1_000, 'second'],
      [90_000, '90 seconds'],
      [3_600_000, 'hour'],
      [172_800_000, '2 days'],
      [1_500, '1500 ms'],
    ] as const) {
      const subject = { id: words, limits: { limit: 1, windowMs } }
      await limiter.reserve([subject], one)
      const { message } = await refusalOf(limiter.reserve([subject], one))
      expect(message).toContain(`limit of 1 request per ${words}.`)
    }
  })

  test('invalid limits and costs are TypeErrors that name the option', async () => {
    const reserve = (limits: Limits, cost: Cost) => limiter.reserve([ann(limits)], cost)

    await expect(reserve({ requestsPerMinute: 0 }, one)).rejects.toThrow(
      'Expected `limits.requestsPerMinute` to be a whole number from 1 to 100000000000, got 0 (number)',
    )
    await expect(reserve({ concurrent: 1.5 }, one)).rejects.toThrow(TypeError)
    await expect(reserve({}, { requests: 1, tokens: -1 })).rejects.toThrow(
      'Expected `tokens` to be a whole number from 0 to 1000000000, got -1 (number)',
    )
    await expect(limiter.reserve([ann({}), ann({})], one)).rejects.toThrow(
      'Expected subjects with different ids',
    )
  })

  test('when many calls arrive at once, exactly the limit is admitted', async () => {
    const subjects = [
      { id: 'b', limits: { requestsPerMinute: 20 } },
      { id: 'a', limits: { requestsPerMinute: 30, concurrent: 25 } },
    ]
    const turned = [...subjects].reverse()

    const results = await Promise.allSettled(
      Array.from({ length: 60 }, (_, index) => limiter.reserve(index % 2 ? subjects : turned, one)),
    )

    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
  })
})
