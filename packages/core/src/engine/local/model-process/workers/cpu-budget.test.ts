import { describe, expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { callBudgetMs, listAwake, restCheckMs, selectNext, TenantCpu } from './cpu-budget.ts'

test('the CPU time of a tenant halves every ten seconds', () => {
  let now = 0
  const tenants = new TenantCpu({ now: () => now })

  tenants.charge('ann', 8_000)
  now += 20_000
  tenants.charge('ann', 1_000)

  expect(tenants.recentMs('ann')).toBe(3_000)
  expect(tenants.recentMs('bob')).toBe(0)
})

test('a tenant with a slow job counts as slow for ten seconds', () => {
  let now = 0
  const tenants = new TenantCpu({ now: () => now })

  tenants.markSlow('ann')

  now = 9_999
  expect([tenants.isSlow('ann'), tenants.isSlow('bob')]).toEqual([true, false])
  now = 10_000
  expect(tenants.isSlow('ann')).toBe(false)
})

test('a call that has used up its budget is rejected, and the error names the limit', () => {
  const budget = budgetOf()
  budget.charge(9_999)
  budget.throwIfSpent()
  budget.charge(2)

  expect(() => budget.throwIfSpent()).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringContaining('10 s of CPU time for each call'),
    }),
  )
})

test('the calls of a tenant share its CPU time, but not their budgets', () => {
  const tenants = new TenantCpu()
  const [one, other] = [budgetOf({ tenant: 'ann' }, tenants), budgetOf({ tenant: 'ann' }, tenants)]

  one.charge(4_000)
  other.fork(one.signal).chargeTenant(100)

  expect([one.remainingMs, other.remainingMs]).toEqual([6_000, 10_000])
  expect(other.tenantMs).toBeGreaterThan(4_000)
})

test('of two tenants, the one with less CPU time for its weight is next', () => {
  const tenants = new TenantCpu({ now: () => 0 })
  const light = { budget: budgetOf({ tenant: 'light' }, tenants) }
  const heavy = { budget: budgetOf({ tenant: 'heavy', weight: 3 }, tenants) }
  light.budget.charge(1_000)
  heavy.budget.charge(2_000)

  expect(selectNext([light, heavy])).toBe(heavy)
})

test('the CPU time of each waiting tenant is read once', () => {
  const tenants = new TenantCpu()
  const reads = vi.spyOn(tenants, 'recentMs')
  const waiting = Array.from({ length: 10 }, (_, index) => ({
    budget: budgetOf({ tenant: `${index}` }, tenants),
  }))

  expect(selectNext(waiting)).toBe(waiting[0])
  expect(reads).toHaveBeenCalledTimes(10)
})

test('a tenant that has used much CPU time waits behind others, but not for ever', () => {
  let now = 0
  const tenants = new TenantCpu({ now: () => now })
  const heavy = { budget: budgetOf({ tenant: 'heavy' }, tenants) }
  const busy = { budget: budgetOf({ tenant: 'busy' }, tenants) }
  heavy.budget.charge(10_000)

  let served = 0
  while (selectNext([heavy, busy]) === busy) {
    served++
    busy.budget.charge(100)
    now += 100
  }

  expect(served).toBeGreaterThan(50)
  expect(served).toBeLessThan(200)
})

describe('a tenant that has recently used much CPU time', () => {
  let now = 0
  const createTenants = (): TenantCpu => {
    const tenants = new TenantCpu({ now: () => now })
    budgetOf({ tenant: 'heavy' }, tenants).charge(750)
    return tenants
  }

  test('rests while answers of others are decoded', () => {
    const tenants = createTenants()
    const [heavy, polite] = ['heavy', 'polite'].map((tenant) => ({ budget: budgetOf({ tenant }, tenants) }))
    if (!heavy || !polite) throw new Error('unreachable')

    expect(listAwake([heavy, polite])).toEqual([heavy, polite])
    heavy.budget.startAnswer()
    expect(listAwake([heavy, polite])).toEqual([heavy, polite])
    const ends = [polite.budget.startAnswer(), polite.budget.startAnswer()]
    expect(listAwake([heavy, polite])).toEqual([polite])
    for (const end of ends) end()
    expect(listAwake([heavy, polite])).toEqual([heavy, polite])
  })

  test('does not rest while no answer is decoded, although those of others are paused', () => {
    const decoding = { isDecoding: true }
    const tenants = new TenantCpu({ isDecoding: () => decoding.isDecoding })
    const heavy = { budget: budgetOf({ tenant: 'heavy' }, tenants) }
    heavy.budget.charge(750)
    tenants.startAnswer('polite')

    expect(listAwake([heavy])).toEqual([])
    decoding.isDecoding = false
    expect(listAwake([heavy])).toEqual([heavy])
  })

  test('goes on after a time, and does not rest if its weight allows more', () => {
    const tenants = createTenants()
    tenants.startAnswer('polite')
    const restsWith = (weight: number): boolean => budgetOf({ tenant: 'heavy', weight }, tenants).mustRest()

    expect([1, 2].map(restsWith)).toEqual([true, false])
    now += 2_000
    expect(restsWith(1)).toBe(false)
  })

  test.each([
    ['a chat', false, 10_000],
    ['a slow job', true, 40_000],
  ])('rests with %s for a limited time, whatever it has used', (_what, isSlow, limitMs) => {
    const tenants = createTenants()
    tenants.startAnswer('polite')
    const heavy = budgetOf({ tenant: 'heavy' }, tenants)
    for (let call = 0; call < 100; call++) heavy.fork(heavy.signal).charge(callBudgetMs)

    now += limitMs / 2
    expect(heavy.mustRest(isSlow)).toBe(true)
    now += limitMs / 2
    expect(heavy.mustRest(isSlow)).toBe(false)
  })

  test.each([1, 2])('gets 5 %% of a core for its weight of %d if it always has long texts', (weight) => {
    const tenants = createTenants()
    tenants.startAnswer('polite')
    const heavy = budgetOf({ tenant: 'heavy', weight }, tenants)
    const [startedAt, pieceMs] = [now, 10]

    let usedMs = 0
    while (now < startedAt + 100_000) {
      if (heavy.mustRest()) now += restCheckMs
      else {
        now += pieceMs
        usedMs += pieceMs
        heavy.chargeTenant(pieceMs)
      }
    }

    expect(usedMs / 100_000 / weight).toBeGreaterThan(0.04)
    expect(usedMs / 100_000 / weight).toBeLessThan(0.06)
  })
})
