/** Random orders of calls, costs and clock changes, checked against the bounds of the limits. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Clock, stores } from '../../../../test/support/limiters.ts'
import { LlmError } from '../errors.ts'
import { toRetrySeconds } from './admission.ts'
import { addCost } from './demand.ts'
import type { Cost, Limits, Reservation, Subject, WindowLimit } from './limits.ts'

const minute = 60_000
const day = 86_400_000

const some = (max: number) => fc.integer({ min: 1, max })
const limits: fc.Arbitrary<Limits & Partial<WindowLimit>> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record(
      {
        ...{ requestsPerMinute: some(20), concurrent: some(4) },
        ...{
          tokensPerMinute: some(2_000),
          inputTokensPerMinute: some(2_000),
          outputTokensPerMinute: some(500),
        },
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ limit: some(20), windowMs: some(3 * minute) }) },
)
type WholeCost = Required<Cost>
const costs: fc.Arbitrary<WholeCost> = fc.record({
  ...{ requests: fc.nat(3), tokens: fc.nat(3_000) },
  ...{ inputTokens: fc.nat(3_000), outputTokens: fc.nat(800) },
})
type Step =
  | { readonly do: 'reserve'; readonly who: readonly number[]; readonly cost: WholeCost }
  | { readonly do: 'take' | 'settle'; readonly which: number; readonly cost: WholeCost }
  | { readonly do: 'release'; readonly which: number }
  | { readonly do: 'pass' | 'jump'; readonly ms: number }
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      who: fc.subarray([0, 1, 2], { minLength: 1 }),
      cost: costs,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('take' as const), which: fc.nat(), cost: costs }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(), cost: costs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(2 * minute) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), ms: fc.constantFrom(-day, day) }) },
)
const nothing: WholeCost = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0 }
const runs = { memory: 1_000, SQLite: 150, PostgreSQL: 50, Redis: 150 } as Readonly<Record<string, number>>

interface Call {
  readonly reserved: WholeCost
  taken: WholeCost
  /** Set when the call is over. */
  used?: WholeCost
}
/** The cost that a call took, or returned when negative. `at` is the elapsed time without clock changes. */
interface Entry {
  readonly call: Call
  readonly at: number
  readonly kind: 'reserved' | 'taken' | 'settled'
  readonly cost: WholeCost
}

describe.each(stores())('limits in $name', ({ name, limiter: make }) => {
  test('are never exceeded, and admit a rejected call after its wait', async () => {
    const lives = fc.tuple(fc.tuple(limits, limits, limits), fc.array(steps, { maxLength: 40 }), fc.boolean())
    let refusals = 0

    await fc.assert(
      fc.asyncProperty(lives, async ([allLimits, life, oneByOne]) => {
        const clock: Clock = { now: 2 * day }
        const limiter = await make(clock)
        const subjects = allLimits.map((limits, index) => ({ id: `subject ${index}`, limits }))
        let passedMs = 0
        const books = new Map<string, Entry[]>(subjects.map(({ id }) => [id, []]))
        const open: {
          readonly reservation: Reservation
          readonly who: readonly Subject[]
          readonly call: Call
        }[] = []
        const note = (who: readonly Subject[], entry: Omit<Entry, 'at'>): void => {
          for (const { id } of who) books.get(id)?.push({ ...entry, at: passedMs })
        }
        const enter = (reservation: Reservation, who: readonly Subject[], cost: WholeCost): void => {
          const call: Call = { reserved: cost, taken: cost }
          note(who, { call, kind: 'reserved', cost })
          open.push({ reservation, who, call })
          for (const { limit, remaining, resetMs } of reservation.limits) {
            expect(remaining).toBeGreaterThanOrEqual(0)
            expect(remaining).toBeLessThanOrEqual(limit)
            expect(resetMs).toBeGreaterThanOrEqual(0)
          }
        }
        const end = async (which: number, cost: WholeCost | undefined): Promise<void> => {
          const [ended] = open.splice(which % Math.max(1, open.length), 1)
          if (!ended) return
          await (cost ? ended.reservation.settle(cost) : ended.reservation.release())
          const { who, call } = ended
          call.used = cost ?? nothing
          note(who, { call, kind: 'settled', cost: addCost(call.used, call.taken, -1) })
        }
        const take = async (which: number, cost: WholeCost): Promise<void> => {
          const { reservation, who, call } = open[which % Math.max(1, open.length)] ?? {}
          if (!reservation || !who || !call) return
          await reservation.take(cost)
          call.taken = addCost(call.taken, cost)
          note(who, { call, kind: 'taken', cost })
        }

        for (const step of life) {
          if (step.do === 'take') await take(step.which, step.cost)
          if (step.do === 'settle') await end(step.which, step.cost)
          if (step.do === 'release') await end(step.which, undefined)
          if (step.do === 'pass' || step.do === 'jump') {
            clock.now += step.ms
            passedMs += Math.max(0, step.ms)
          }
          if (step.do !== 'reserve') continue
          while (oneByOne && open.length > 0) await end(0, step.cost)
          const who = step.who.map((index) => subjects[index] as (typeof subjects)[number])
          const refusal = await limiter.reserve(who, step.cost).then(
            (reservation) => enter(reservation, who, step.cost),
            (error: unknown) => error as LlmError,
          )
          if (!refusal) continue
          expect(refusal).toBeInstanceOf(LlmError)
          expect(refusal.code).toBe('rate_limit')
          if (refusal.message.includes('at the same time')) continue
          refusals++

          const seconds = toRetrySeconds(refusal.details.retryAfterMs ?? 0)
          const pass = (ms: number): void => {
            clock.now += ms
            passedMs += ms
          }
          pass((seconds - 1) * 1_000)
          const early = limiter.reserve(who, step.cost)
          await expect(early).rejects.toThrow(LlmError)
          pass(1_000)
          // Other running calls of the subject may still fill a concurrency limit.
          const crowded = who.some(
            ({ id, limits }) =>
              limits.concurrent !== undefined &&
              open.filter(({ who }) => who.some((other) => other.id === id)).length >= limits.concurrent,
          )
          if (!crowded) enter(await limiter.reserve(who, step.cost), who, step.cost)
        }

        for (const { id, limits } of subjects) {
          const entries = books.get(id) ?? []
          for (const [name, limit, windowMs = minute] of [
            ['requests', limits.limit ?? limits.requestsPerMinute, limits.windowMs],
            ['tokens', limits.tokensPerMinute],
            ['inputTokens', limits.inputTokensPerMinute],
            ['outputTokens', limits.outputTokensPerMinute],
          ] as const) {
            if (limit === undefined) continue
            expectTaken(entries, name, limit, windowMs)
            if (oneByOne) expectUsed(entries, name, limit, windowMs)
          }
        }
        await limiter.close()
      }),
      { numRuns: runs[name] ?? 25 },
    )

    expect(refusals).toBeGreaterThan(10)
  })
})

const atMost = (value: number, most: number): void => {
  if (value > most) expect(value).toBeLessThanOrEqual(most)
}

/**
 * Checks all pairs of moments, however calls overlap. At an admission, a full bucket and its refill cover
 * everything taken so far. Beyond that, only calls that already ran at the last admission take units.
 */
function expectTaken(
  entries: readonly Entry[],
  name: keyof WholeCost,
  limit: number,
  windowMs: number,
): void {
  for (const [index, first] of entries.entries()) {
    let total = 0
    let debts = new Map<Call, number>()
    for (const { call, kind, at, cost } of entries.slice(index)) {
      const paid = limit + (limit * (at - first.at)) / windowMs
      const units = cost[name]
      if (kind === 'reserved' && units > 0) {
        atMost(total + Math.min(units, limit), paid)
        debts = new Map([[call, Math.max(0, units - limit)]])
      } else debts.set(call, (debts.get(call) ?? 0) + units)
      total += units
      const owed = [...debts.values()].reduce((sum, debt) => sum + Math.max(0, debt), 0)
      atMost(total, paid + owed)
    }
  }
}

/**
 * Checks the actual use of sequential calls, each part at the moment when it was taken. In any window it is
 * at most a full bucket, its refill, and the debt of one call.
 */
function expectUsed(entries: readonly Entry[], name: keyof WholeCost, limit: number, windowMs: number): void {
  const uses = usesOf(entries, name)
  for (const [index, first] of uses.entries()) {
    let total = 0
    let debt = 0
    for (const { call, kind, at, units } of uses.slice(index)) {
      if (at >= first.at + windowMs) break
      const paid = limit + (limit * (at - first.at)) / windowMs
      if (kind === 'reserved') atMost(total + Math.min(call.reserved[name], limit), paid)
      debt = kind === 'reserved' ? Math.max(0, units - limit) : debt + units
      total += units
      atMost(total, 2 * limit + debt)
    }
  }
}

/**
 * Returns the units that were really used, without returned units. A call uses the units that it took first.
 * Calls that reserve nothing never wait, so they are left out.
 */
function usesOf(
  entries: readonly Entry[],
  name: keyof WholeCost,
): readonly (Entry & { readonly units: number })[] {
  const left = new Map<Call, number>()
  return entries
    .filter(({ call }) => call.reserved[name] > 0)
    .map((entry) => {
      const { call, kind, cost } = entry
      const rest = left.get(call) ?? (call.used ?? call.taken)[name]
      const units = kind === 'settled' ? rest : Math.min(rest, cost[name])
      left.set(call, rest - units)
      return { ...entry, units }
    })
}
