import { expect, test } from 'vitest'
import { StepCosts } from './steps.ts'

/** @param ms what steps of one, two, three… answers take */
function costs(...ms: number[]): StepCosts {
  const all = new StepCosts()
  for (const [index, each] of ms.entries()) for (let time = 0; time < 4; time++) all.observe(index + 1, each)
  return all
}

test('together, where that is cheaper', () => {
  expect(costs(10, 12, 14, 15).plan([0, 1, 2, 3])).toEqual([[0, 1, 2, 3]])
})

test('each for itself, where that is', () => {
  expect(costs(10, 25, 40).plan([0, 1, 2])).toEqual([[0], [1], [2]])
})

test('in the split that costs least', () => {
  expect(costs(10, 11, 40, 41).plan([0, 1, 2, 3])).toEqual([
    [0, 1],
    [2, 3],
  ])
})

test('a gap in the ids makes two batches of one', () => {
  expect(costs(10, 11, 12).plan([0, 1, 5])).toEqual([[0, 1, 5]])
  expect(costs(10, 19, 50).plan([0, 2, 4])).toEqual([[0, 2, 4]])
})

test('a size that was never tried is tried, and not given up for its slow first time', () => {
  const all = costs(10)

  expect(all.plan([0, 1, 2])).toEqual([[0, 1, 2]])
  all.observe(3, 900)
  expect(all.plan([0, 1, 2])).toEqual([[0, 1, 2]])
  for (let time = 0; time < 3; time++) all.observe(3, 12)
  expect(all.plan([0, 1, 2])).toEqual([[0, 1, 2]])
})

test('what a step costs now counts, and a single hiccup does not', () => {
  const all = costs(10, 12)
  all.observe(2, 500)
  for (let time = 0; time < 4; time++) all.observe(2, 12)
  expect(all.plan([0, 1])).toEqual([[0, 1]])

  for (let time = 0; time < 9; time++) all.observe(2, 30)
  expect(all.plan([0, 1])).toEqual([[0], [1]])
})

test('now and then all go together, to see whether it has become cheaper', () => {
  const all = costs(10, 30)

  const plans = Array.from({ length: 200 }, () => all.plan([0, 1]).length)

  expect(plans.filter((steps) => steps === 1).length).toBeGreaterThan(0)
  expect(plans.filter((steps) => steps === 1).length).toBeLessThan(5)
})

test('nobody makes no step', () => {
  expect(new StepCosts().plan([])).toEqual([])
})
