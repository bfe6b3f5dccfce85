import { expect, test } from 'vitest'
import { DraftPlanner } from './draft-planner.ts'

const rates = (hitRate: number, count = 63): readonly number[] => Array<number>(count).fill(hitRate)

/** A planner that has seen ten steps with one row of 10 ms. */
function planner(): DraftPlanner {
  const created = new DraftPlanner()
  for (let step = 0; step < 10; step++) created.observe(1, 1, 10)
  return created
}

test('nothing is guessed before steps with one row were timed', () => {
  const fresh = new DraftPlanner()
  expect(fresh.plan(rates(1))).toBe(0)
  for (let step = 0; step < 3; step++) fresh.observe(1, 1, 10)
  // 64 rows may cost more than the planner dares at first.
  expect(fresh.plan(rates(1))).toBe(31)
})

test('the number of guesses grows with their hit rate, and few or unlikely guesses do not pay', () => {
  expect(planner().plan(rates(0.5))).toBe(0)
  expect(planner().plan(rates(0.95))).toBe(7)
  expect(planner().plan(rates(0.97))).toBe(15)
  expect(planner().plan(rates(0.99))).toBe(31)
  expect(planner().plan(rates(1, 20))).toBe(15)
  expect(planner().plan([])).toBe(0)
})

test('measured costs replace assumed ones, and a single outlier does not count', () => {
  const cheap = planner()
  cheap.observe(32, 32, 30)
  cheap.observe(64, 64, 30)
  expect(cheap.plan(rates(0.97))).toBe(63)
  cheap.observe(64, 64, 5_000)
  cheap.observe(64, 64, 30)
  cheap.observe(64, 64, 30)
  expect(cheap.plan(rates(0.99))).toBe(63)

  const costly = planner()
  for (const rows of [2, 4, 8, 16, 32, 64])
    for (let step = 0; step < 8; step++) costly.observe(rows, rows, 10 * rows)
  expect(costly.plan(rates(1))).toBe(0)
})

test('wrong estimates slow outputs by at most 3 percent of 1,600 steps, and right guesses pay for later ones', () => {
  const wrong = planner()
  let [ms, tokens] = [0, 0]
  while (tokens < 1_600) {
    const rows = wrong.plan(rates(0.99)) + 1
    const stepMs = 10 * rows ** 0.8
    wrong.observe(rows, 1, stepMs)
    ms += stepMs
    tokens++
  }
  expect(ms / tokens / 10).toBeGreaterThan(1)
  expect(ms / tokens / 10).toBeLessThan(1.03)
  expect(wrong.plan(rates(0.99))).toBeLessThan(15)

  for (let step = 0; step < 2; step++) wrong.observe(32, 32, 160)
  expect(wrong.plan(rates(0.99))).toBeGreaterThan(15)
})

test('costs that a disturbance has raised are forgotten', () => {
  const disturbed = planner()
  for (const rows of [2, 4, 8, 16, 32, 64])
    for (let step = 0; step < 8; step++) disturbed.observe(rows, rows, 10 * rows)

  for (let step = 0; step < 1_001; step++) disturbed.plan(rates(0.99))

  expect(disturbed.plan(rates(0.99))).toBeGreaterThan(0)
})
