import { setImmediate } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { selectNext, TenantCpu } from './cpu-budget.ts'

test('the CPU time of a tenant halves every ten seconds', () => {
  let now = 0
  const tenants = new TenantCpu(() => now)

  tenants.charge('ann', 8_000)
  now += 20_000
  tenants.charge('ann', 1_000)

  expect(tenants.recentMs('ann')).toBe(3_000)
  expect(tenants.recentMs('bob')).toBe(0)
})

test('a tenant with a slow job counts as slow for ten seconds', () => {
  let now = 0
  const tenants = new TenantCpu(() => now)

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
  const tenants = new TenantCpu(() => 0)
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

test('a tenant who has used much CPU time waits behind others, but not for ever', () => {
  let now = 0
  const tenants = new TenantCpu(() => now)
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

describe('a tenant who has used much CPU time', () => {
  const heavyTenants = (): { readonly tenants: TenantCpu; readonly rest: () => void } => {
    let now = 0
    const tenants = new TenantCpu(() => now)
    budgetOf({ tenant: 'heavy' }, tenants).charge(701)
    return {
      tenants,
      rest: () => {
        now += 10_000
      },
    }
  }

  test('waits while the model generates for others', async () => {
    const { tenants, rest } = heavyTenants()
    tenants.startAnswer('heavy')
    tenants.startAnswer('polite')
    let hasPassed = false
    const waiting = budgetOf({ tenant: 'heavy' }, tenants)
      .pace()
      .then(() => {
        hasPassed = true
      })

    await budgetOf({ tenant: 'polite' }, tenants).pace()
    await setImmediate()
    expect(hasPassed).toBe(false)
    rest()
    await waiting
  })

  test('goes on when the answers of others have ended', async () => {
    const { tenants } = heavyTenants()
    const endAnswer = tenants.startAnswer('polite')
    const waiting = budgetOf({ tenant: 'heavy' }, tenants).pace()
    endAnswer()
    await waiting
  })

  test('does not wait for answers of its own, or with enough weight', async () => {
    const { tenants } = heavyTenants()
    tenants.startAnswer('heavy')
    await budgetOf({ tenant: 'heavy' }, tenants).pace()
    tenants.startAnswer('polite')
    await budgetOf({ tenant: 'heavy', weight: 2 }, tenants).pace()
  })

  test('does not wait after the caller has left', async () => {
    const { tenants } = heavyTenants()
    tenants.startAnswer('polite')
    const leave = new AbortController()
    const waiting = budgetOf({ tenant: 'heavy', signal: leave.signal }, tenants).pace()
    leave.abort()
    await waiting
  })
})
