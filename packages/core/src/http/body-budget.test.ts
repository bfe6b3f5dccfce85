import { describe, expect, test } from 'vitest'
import { BodyBudget } from './body-budget.ts'
import type { HttpRequest, HttpResponse } from './message.ts'

const limits = { maxBytes: 1_000, maxBytesPerTenant: 400, stallTimeoutMs: 1_000 }
const text: HttpResponse = { status: 200, headers: {}, body: 'done' }

describe('reserved memory', () => {
  test('of one caller is limited, and other callers still get theirs', () => {
    const budget = new BodyBudget(limits)
    budget.reserve('ann', 300)
    budget.reserve('ann', 100)

    expect(() => budget.reserve('ann', 1)).toThrow(
      expect.objectContaining({ code: 'rate_limit', details: { retryAfterMs: 1_000 } }),
    )
    budget.reserve('bob', 250)
    expect(budget.reservedBytes).toBe(650)
  })

  test('of a caller that is released can be reserved again', () => {
    const budget = new BodyBudget(limits)
    budget.reserve('ann', 400)
    budget.release('ann', 150)

    expect(() => budget.reserve('ann', 151)).toThrow(expect.objectContaining({ code: 'rate_limit' }))
    budget.reserve('ann', 150)
    budget.release('ann', 400)
    expect(budget.reservedBytes).toBe(0)
  })

  test('of many greedy callers leaves room for a small one', () => {
    const budget = new BodyBudget(limits)
    const refused: string[] = []
    for (let caller = 0; caller < 50; caller++)
      for (const bytes of [200, 100, 50, 10])
        try {
          budget.reserve(`greedy ${caller}`, bytes)
        } catch (error) {
          refused.push((error as { code: string }).code)
        }

    expect(new Set(refused)).toEqual(new Set(['overloaded']))
    expect(budget.reservedBytes).toBeGreaterThan(900)
    expect(budget.reservedBytes).toBeLessThan(1_000)
    budget.reserve('small', 5)
  })

  test('of many greedy callers leaves 64 KiB for each of the others', () => {
    const budget = new BodyBudget({ maxBytes: 2 ** 27, maxBytesPerTenant: 2 ** 25, stallTimeoutMs: 1_000 })
    const isReserved = (tenant: string, bytes: number): boolean => {
      try {
        budget.reserve(tenant, bytes)
        return true
      } catch {
        return false
      }
    }
    const greedy = Array.from({ length: 100 }, (_, caller) => `greedy ${caller}`)
    for (const caller of greedy) for (let bytes = 2 ** 25; bytes >= 1; bytes /= 2) isReserved(caller, bytes)
    expect(isReserved('small', 2 ** 16)).toBe(true)
    expect(isReserved('small', 2 ** 16)).toBe(false)

    // 256 tenants have 64 KiB each, an eighth of all memory.
    for (let caller = 0; caller < 300; caller++) isReserved(`caller ${caller}`, 2 ** 16)
    expect(budget.reservedBytes).toBeLessThanOrEqual(2 ** 27 + 2 ** 24)
    expect(isReserved('late', 2 ** 16)).toBe(false)

    budget.release('small', 2 ** 16)
    expect(isReserved('late', 2 ** 16)).toBe(true)
  })

  test('of a caller with and without a floor is free again after its release', () => {
    const budget = new BodyBudget({ maxBytes: 2 ** 20, maxBytesPerTenant: 2 ** 19, stallTimeoutMs: 1_000 })
    const sizes = { ann: 2 ** 17, bob: 2 ** 16, eve: 2 ** 17 }

    for (let round = 0; round < 50; round++) {
      for (const [tenant, bytes] of Object.entries(sizes)) budget.reserve(tenant, bytes)
      for (const [tenant, bytes] of Object.entries(sizes)) {
        budget.release(tenant, bytes / 2)
        budget.release(tenant, bytes / 2)
      }
    }

    expect(budget.reservedBytes).toBe(0)
    budget.reserve('ann', 2 ** 19)
  })
})

describe('the memory of a request', () => {
  const controller = () => new AbortController()
  const requestOf = (signal: AbortSignal) =>
    ({
      signal,
      json: async (_default, allowance) => allowance?.reserve(300),
      bytes: (allowance) => {
        allowance?.reserve(200)
        return (async function* () {})()
      },
    }) as Partial<HttpRequest> as HttpRequest
  const read = async (request: HttpRequest) => {
    await request.json()
    return text
  }

  test('is released with a complete response', async () => {
    const budget = new BodyBudget(limits)
    const during: number[] = []

    const response = await budget.run(requestOf(controller().signal), 'ann', async (request) => {
      await read(request)
      during.push(budget.reservedBytes)
      return text
    })

    expect(response).toBe(text)
    expect([during, budget.reservedBytes]).toEqual([[300], 0])
  })

  test('is released when the handler fails', async () => {
    const budget = new BodyBudget(limits)
    const failing = budget.run(requestOf(controller().signal), 'ann', async (request) => {
      request.bytes()
      throw new Error('no')
    })

    await expect(failing).rejects.toThrow('no')
    expect(budget.reservedBytes).toBe(0)
  })

  test('holds a whole answer until it is sent, and rejects only the next requests of its tenant', async () => {
    const budget = new BodyBudget({ maxBytes: 2 ** 20, maxBytesPerTenant: 2 ** 18, stallTimeoutMs: 1_000 })
    const sent: (() => void)[] = []
    const request: HttpRequest = {
      ...requestOf(controller().signal),
      onSent: (callback) => void sent.push(callback),
    }
    const answer = async (body: string) => budget.run(request, 'ann', async () => ({ ...text, body }))
    const reject = expect.objectContaining({ code: 'rate_limit', details: { retryAfterMs: 1_000 } })

    await answer('short')
    expect([budget.reservedBytes, sent.length]).toEqual([0, 0])
    // More than all memory.
    expect((await answer('é'.repeat(2 ** 20))).body).toHaveLength(2 ** 20)
    expect(budget.reservedBytes).toBe(2 ** 21)

    await expect(answer('short')).rejects.toEqual(reject)
    expect(() => budget.reserve('ann', 1)).toThrow(reject)
    budget.reserve('bob', 2 ** 16)
    expect(() => budget.reserve('bob', 1)).toThrow(expect.objectContaining({ code: 'overloaded' }))

    for (const onSent of sent) onSent()
    budget.release('bob', 2 ** 16)
    expect(budget.reservedBytes).toBe(0)
    expect(await answer('short')).toMatchObject({ body: 'short' })
  })

  test('is held by a stream until the response is over', async () => {
    const budget = new BodyBudget(limits)
    const over = controller()
    const body = (async function* () {})()

    await budget.run(requestOf(over.signal), 'ann', async (request) => ({ ...(await read(request)), body }))

    expect(budget.reservedBytes).toBe(300)
    over.abort()
    expect(budget.reservedBytes).toBe(0)
  })

  test('of a stream whose client has left is released at once', async () => {
    const budget = new BodyBudget(limits)
    const body = (async function* () {})()
    const request = requestOf(AbortSignal.abort())

    await budget.run(request, 'ann', async (request) => ({ ...(await read(request)), body }))

    expect(budget.reservedBytes).toBe(0)
  })

  test('keeps all other properties of the request', async () => {
    const budget = new BodyBudget(limits)
    const request = { ...requestOf(controller().signal), method: 'POST', path: '/x', params: { a: 'b' } }

    await budget.run(request, 'ann', async (given) => {
      expect(given).toMatchObject({ method: 'POST', path: '/x', params: { a: 'b' }, signal: request.signal })
      return text
    })
  })
})
