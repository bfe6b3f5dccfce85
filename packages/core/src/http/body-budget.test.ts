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
