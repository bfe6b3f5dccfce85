import { expect, test } from 'vitest'
import { RetryBudget } from './retry-budget.ts'

const takeAll = (budget: RetryBudget): number => {
  let count = 0
  while (budget.take()) count++
  return count
}

test('50 retries are possible at once, then one per five calls', () => {
  const budget = new RetryBudget(0.2)
  expect(takeAll(budget)).toBe(50)

  for (let call = 0; call < 100; call++) budget.onCall()
  expect(takeAll(budget)).toBe(20)

  for (let call = 0; call < 10_000; call++) budget.onCall()
  expect(takeAll(budget)).toBe(50)
})

test('a share of 0 has no retries', () => {
  expect(new RetryBudget(0).take()).toBe(false)
})
