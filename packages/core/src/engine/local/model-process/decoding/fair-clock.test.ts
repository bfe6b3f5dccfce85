import { describe, expect, test } from 'vitest'
import { FairClock } from './fair-clock.ts'

const one = (tenant: string, weight = 1) => ({ tenant, weight })

/** Gives steps of 10 ms to the tenant with the lowest time, and returns their order. */
function steps(clock: FairClock, tenants: readonly { tenant: string; weight: number }[], count: number) {
  let order = ''
  for (let step = 0; step < count; step++) {
    clock.setCompetitors(tenants)
    const next = tenants.reduce((best, other) =>
      clock.timeOf(other.tenant) < clock.timeOf(best.tenant) ? other : best,
    )
    order += next.tenant
    clock.charge(next, 10)
  }
  return order
}

describe('a fair clock', () => {
  test('gives tenants of equal weight equal time', () => {
    expect(steps(new FairClock(), [one('a'), one('b'), one('c')], 9)).toBe('abcabcabc')
  })

  test('gives a tenant of weight 2 twice the time', () => {
    const order = steps(new FairClock(), [one('a'), one('b', 2)], 30)

    expect(order.replaceAll('a', '')).toHaveLength(20)
  })

  test('counts time, not steps', () => {
    const clock = new FairClock()
    clock.charge(one('a'), 30)
    clock.charge(one('b'), 10)
    clock.charge(one('b'), 10)

    expect(clock.timeOf('a')).toBeGreaterThan(clock.timeOf('b'))
  })

  test('starts a new tenant at the time of the others, whatever they used before', () => {
    const clock = new FairClock()
    steps(clock, [one('a')], 1_000)

    expect(steps(clock, [one('a'), one('b')], 4)).toBe('baba')
  })

  test('does not make up for the time that a tenant was away', () => {
    const clock = new FairClock()
    steps(clock, [one('a'), one('b')], 2)
    steps(clock, [one('a')], 1_000)

    expect(steps(clock, [one('a'), one('b')], 4)).toBe('baba')
  })

  test('forgets a lead of more than a second, so that no tenant waits for long', () => {
    const clock = new FairClock()
    clock.charge(one('a'), 60_000)

    const order = steps(clock, [one('a'), one('b')], 150)

    expect(order.indexOf('a')).toBe(100)
  })

  test('lets tenants that arrive one after the other put off the others by a bounded time', () => {
    const clock = new FairClock()
    clock.charge(one('a'), 500)
    const order = Array.from({ length: 100 }, (_, arrival) => steps(clock, [one('a'), one(`b${arrival}`)], 1))

    // At each step of 10 ms but the first, the virtual time of two tenants advances by 5 ms.
    expect(order.indexOf('a')).toBe(1 + 250 / 5)
  })

  test('remembers what a tenant used, so that leaving gains nothing', () => {
    const clock = new FairClock()
    clock.setCompetitors([one('a'), one('b')])
    clock.charge(one('a'), 20)
    clock.setCompetitors([one('b')])

    expect(steps(clock, [one('a'), one('b')], 4)).toBe('bbab')
  })

  test('forgets what all tenants used when none competes any more', () => {
    const clock = new FairClock()
    clock.setCompetitors([one('a'), one('b')])
    clock.charge(one('a'), 20)
    clock.setCompetitors([])

    expect(steps(clock, [one('a'), one('b')], 4)).toBe('abab')
  })

  test('orders a tenant that returns before those that stayed, until it has used 250 ms', () => {
    const clock = new FairClock()
    clock.setCompetitors([one('a'), one('b')])
    clock.charge(one('a'), 100)
    clock.setCompetitors([one('b')])
    clock.charge(one('b'), 300)
    clock.setCompetitors([one('a'), one('b')])

    const used = Array.from({ length: 50 }, (_, count) => count * 10).find((ms) => {
      if (ms > 0) clock.charge(one('a'), 10)
      return clock.orderTimeOf('a') >= clock.timeOf('a')
    })

    expect(clock.timeOf('b')).toBe(clock.orderTimeOf('b'))
    expect(used).toBe(250)
  })

  test('counts a tenant that has left with more than the others, but at most as much as those that compete', () => {
    const clock = new FairClock({ countsDeparted: true })
    clock.setCompetitors([one('a'), one('b'), one('c'), one('d'), one('e')])
    for (const tenant of ['c', 'd', 'e']) clock.charge(one(tenant), 900)
    clock.setCompetitors([one('a'), one('b')])
    const from = clock.timeOf('new')
    clock.charge(one('a'), 100)
    clock.setCompetitors([one('a'), one('b')])

    // 100 ms among two tenants, and as much for the three that have left.
    expect(clock.timeOf('new') - from).toBe(25)
  })
})
