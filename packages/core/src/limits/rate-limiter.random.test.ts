/** Any order of calls, of what they come to and of what the clock does: what nobody may get, and what everybody does. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Clock, stores } from '../../../../test/support/limiters.ts'
import { LlmError } from '../errors.ts'
import { toSeconds } from './admission.ts'
import type { Cost, Limits, Reservation, Subject } from './limits.ts'

const minute = 60_000
const day = 86_400_000

const some = (max: number) => fc.integer({ min: 1, max })
const limits: fc.Arbitrary<Limits> = fc.record(
  { requestsPerMinute: some(20), tokensPerMinute: some(2_000), concurrent: some(4) },
  { requiredKeys: [] },
)
const costs: fc.Arbitrary<Cost> = fc.record({ requests: fc.nat(3), tokens: fc.nat(3_000) })
type Step =
  | { readonly do: 'reserve'; readonly who: readonly number[]; readonly cost: Cost }
  | { readonly do: 'settle'; readonly which: number; readonly cost: Cost }
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
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(), cost: costs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(2 * minute) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), ms: fc.constantFrom(-day, day) }) },
)
const runs = { memory: 1_000, SQLite: 150, PostgreSQL: 50 } as Readonly<Record<string, number>>

/** What a subject has been given, when by a clock that only counts the time that goes by, and what came back of it since. */
interface Given {
  readonly at: number
  readonly reserved: Cost
  used: Cost
}
type Entry = { readonly given: Given } | { readonly back: Cost }

describe.each(stores())('limits in $name', ({ name, limiter: make }) => {
  test('keep within what the limits allow, whatever happens, and what is told to wait gets in', async () => {
    const lives = fc.tuple(fc.tuple(limits, limits, limits), fc.array(steps, { maxLength: 40 }), fc.boolean())
    let refusals = 0

    await fc.assert(
      fc.asyncProperty(lives, async ([allLimits, life, oneByOne]) => {
        const clock: Clock = { now: 2 * day }
        const limiter = await make(clock)
        const subjects = allLimits.map((limits, index): Subject => ({ id: `subject ${index}`, limits }))
        let passedMs = 0
        const books = new Map<string, Entry[]>(subjects.map(({ id }) => [id, []]))
        const open: {
          readonly reservation: Reservation
          readonly who: readonly Subject[]
          readonly given: Given
        }[] = []
        const take = (reservation: Reservation, who: readonly Subject[], cost: Cost): void => {
          const given: Given = { at: passedMs, reserved: cost, used: cost }
          for (const { id } of who) books.get(id)?.push({ given })
          open.push({ reservation, who, given })
          for (const { limit, remaining, resetMs } of reservation.limits) {
            expect(remaining).toBeGreaterThanOrEqual(0)
            expect(remaining).toBeLessThanOrEqual(limit)
            expect(resetMs).toBeGreaterThanOrEqual(0)
          }
        }
        const end = async (which: number, cost: Cost | undefined): Promise<void> => {
          const [ended] = open.splice(which % Math.max(1, open.length), 1)
          if (!ended) return
          await (cost ? ended.reservation.settle(cost) : ended.reservation.release())
          const { who, given } = ended
          given.used = cost ?? { requests: 0, tokens: 0 }
          const back = {
            requests: given.reserved.requests - given.used.requests,
            tokens: given.reserved.tokens - given.used.tokens,
          }
          for (const { id } of who) books.get(id)?.push({ back })
        }

        for (const step of life) {
          if (step.do === 'settle') await end(step.which, step.cost)
          if (step.do === 'release') await end(step.which, undefined)
          if (step.do === 'pass' || step.do === 'jump') {
            clock.now += step.ms
            passedMs += Math.max(0, step.ms)
          }
          if (step.do !== 'reserve') continue
          while (oneByOne && open.length > 0) await end(0, step.cost)
          const who = step.who.map((index) => subjects[index] as Subject)
          const refusal = await limiter.reserve(who, step.cost).then(
            (reservation) => take(reservation, who, step.cost),
            (error: unknown) => error as LlmError,
          )
          if (!refusal) continue
          expect(refusal).toBeInstanceOf(LlmError)
          expect(refusal.code).toBe('rate_limit')
          if (refusal.message.includes('at the same time')) continue
          refusals++

          const seconds = toSeconds(refusal.details.retryAfterMs ?? 0)
          const pass = (ms: number): void => {
            clock.now += ms
            passedMs += ms
          }
          pass((seconds - 1) * 1_000)
          const early = limiter.reserve(who, step.cost)
          await expect(early).rejects.toThrow(LlmError)
          pass(1_000)
          // Others of the subject may still run, which no bucket knows of.
          const crowded = who.some(
            ({ id, limits }) =>
              limits?.concurrent !== undefined &&
              open.filter(({ who }) => who.some((other) => other.id === id)).length >= limits.concurrent,
          )
          if (!crowded) take(await limiter.reserve(who, step.cost), who, step.cost)
        }

        for (const { id, limits } of subjects) {
          const entries = books.get(id) ?? []
          for (const [name, limit] of [
            ['requests', limits?.requestsPerMinute],
            ['tokens', limits?.tokensPerMinute],
          ] as const) {
            if (limit === undefined) continue
            expectBalanced(entries, name, limit)
            if (oneByOne) expectUsed(entries, name, limit)
          }
        }
        await limiter.close()
      }),
      { numRuns: runs[name] ?? 25 },
    )

    expect(refusals).toBeGreaterThan(10)
  })
})

/** From any call to any later one: a full bucket, what flows in meanwhile, what comes back, and the last one's debt. */
function expectBalanced(entries: readonly Entry[], name: keyof Cost, limit: number): void {
  for (const [index, first] of entries.entries()) {
    if (!('given' in first)) continue
    let balance = 0
    for (const entry of entries.slice(index)) {
      if ('back' in entry) balance -= entry.back[name]
      if (!('given' in entry)) continue
      const { at, reserved } = entry.given
      balance += reserved[name]
      if (reserved[name] === 0) continue
      const most = Math.max(limit, reserved[name]) + (limit * (at - first.given.at)) / minute
      expect(balance).toBeLessThanOrEqual(most)
    }
  }
}

/** In no minute more than a full bucket, what flows in meanwhile, and one call's debt; where no call runs beside another. */
function expectUsed(entries: readonly Entry[], name: keyof Cost, limit: number): void {
  const given = entries.flatMap((entry) => ('given' in entry ? [entry.given] : []))
  // Who asks for nothing waits for nothing, whatever it comes to.
  const calls = given.filter(({ reserved }) => reserved[name] > 0)
  const largest = Math.max(0, ...calls.map(({ used }) => used[name]))
  for (const first of calls) {
    const within = calls.filter(({ at }) => at >= first.at && at < first.at + minute)
    const total = within.reduce((sum, { used }) => sum + used[name], 0)
    expect(total).toBeLessThanOrEqual(2 * limit + largest)
  }
}
