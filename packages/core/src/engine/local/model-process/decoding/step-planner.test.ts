import { expect, test } from 'vitest'
import { StepPlanner } from './step-planner.ts'

/** @param ms time of steps with one, two, three… sequences */
function costs(...ms: number[]): StepPlanner {
  const all = new StepPlanner()
  for (const [index, each] of ms.entries()) for (let time = 0; time < 3; time++) all.observe(index + 1, each)
  return all
}

/** Plans the steps this many times and reports their times. */
function work(all: StepPlanner, ids: readonly number[], times: number, ms: (count: number) => number) {
  return Array.from({ length: times }, () => {
    const plan = all.plan(ids)
    for (const { length } of plan) all.observe(length, ms(length))
    return plan.map(({ length }) => length).join('+')
  })
}

const ids = (count: number): number[] => Array.from({ length: count }, (_, id) => id)
const sum = (plan: string, ms: (count: number) => number): number =>
  plan.split('+').reduce((total, count) => total + ms(Number(count)), 0)

/**
 * Measured step times in ms, by number of sequences: three of real machines, and one case where sizes hardly
 * matter.
 */
const machines = {
  q4_0: [0, 18.3, 44.5, 60, 66, 97, 112, 124, 106],
  q8_0: [0, 24.5, 80, 87, 94, 138, 148, 158, 137],
  'q4_0, two threads': [0, 13, 25, 32.5, 35, 50, 56, 64, 55],
  'a graphics card': [0, 5, 5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7],
}

test('plans one batch if that is cheaper', () => {
  expect(costs(10, 12, 14, 15).plan(ids(4))).toEqual([[0, 1, 2, 3]])
})

test('plans one step per sequence if that is cheaper', () => {
  expect(costs(10, 25, 40).plan(ids(3))).toEqual([[0], [1], [2]])
})

test('plans the split with the lowest cost', () => {
  expect(costs(10, 11, 40, 41).plan(ids(4))).toEqual([
    [0, 1],
    [2, 3],
  ])
})

test('only consecutive ids share a batch', () => {
  expect(costs(10, 11, 12).plan([0, 1, 5])).toEqual([[0, 1], [5]])
  expect(costs(10, 11, 12).plan([0, 2, 4])).toEqual([[0], [2], [4]])
})

for (const [machine, table] of Object.entries(machines)) {
  const ms = (count: number): number => table[count] ?? 0
  /** Cost of the best split, by number of sequences. */
  const least: number[] = table.map(() => 0)
  for (let count = 1; count < table.length; count++)
    least[count] = Math.min(...ids(count).map((rest) => (least[rest] ?? 0) + ms(count - rest)))

  test(`the best split is found soon and kept as the number of sequences grows: ${machine}`, () => {
    const all = new StepPlanner()
    for (let count = 1; count < table.length; count++) {
      const plans = work(all, ids(count), 40, ms)
      const lost = plans.reduce((total, plan) => total + sum(plan, ms) - (least[count] ?? 0), 0)

      expect(sum(plans.at(-1) ?? '', ms)).toBe(least[count])
      expect(lost).toBeLessThan((least[count] ?? 0) * 2.5)
    }
  })

  test(`without timings, the plan is soon no worse than one batch or single steps: ${machine}`, () => {
    for (let count = 1; count < table.length; count++) {
      const plans = work(new StepPlanner(), ids(count), 40, ms)

      expect(sum(plans.at(-1) ?? '', ms)).toBeLessThanOrEqual(Math.min(ms(count), count * ms(1)))
    }
  })
}

test('a slow first step does not decide the plan', () => {
  const all = costs(10)

  expect(all.plan(ids(2))).toHaveLength(1)
  all.observe(2, 900)
  expect(all.plan(ids(2))).toHaveLength(1)
  all.observe(2, 12)

  expect(all.plan(ids(2))).toHaveLength(1)
})

test('timings from a short disturbance are soon forgotten', () => {
  const ms = (count: number): number => [0, 18, 45][count] ?? 0
  const all = new StepPlanner()
  const before = work(all, ids(2), 100, ms)
  const meanwhile = work(all, ids(2), 8, (count) => 2 * ms(count))
  const after = work(all, ids(2), 200, ms)

  expect(before.at(-1)).toBe('1+1')
  expect(meanwhile).toContain('2')
  expect(after.filter((plan) => plan === '2').length).toBeLessThan(40)
})

test('the current time of a step counts, and a single outlier does not', () => {
  const all = costs(10, 12)
  all.observe(2, 500)
  expect(all.plan([0, 1])).toEqual([[0, 1]])

  for (let time = 0; time < 8; time++) all.observe(2, 30)
  expect(all.plan([0, 1])).toEqual([[0], [1]])
})

test('a size that has become cheaper is found, at a cost of less than one step in fifty', () => {
  const before = [0, 10, 30]
  const all = costs(10, 30)
  const steady = work(all, ids(2), 1_000, (count) => before[count] ?? 0)
  const after = work(all, ids(2), 1_700, (count) => 10 + count).slice(-1_000)

  expect(steady.filter((plan) => plan === '2').length).toBeGreaterThan(0)
  expect(steady.filter((plan) => plan === '2').length).toBeLessThan(20)
  expect(after.filter((plan) => plan === '1+1').length).toBeLessThan(20)
})

test('single steps are tried again after a long time of batches', () => {
  const all = new StepPlanner()
  const together = work(all, ids(4), 1_000, (count) => [0, 18, 45, 60, 66][count] ?? 0)
  const apart = work(all, ids(4), 1_700, (count) => [0, 10, 45, 60, 66][count] ?? 0).slice(-1_000)

  expect(together.filter((plan) => plan !== '4').length).toBeLessThan(20)
  expect(apart.filter((plan) => plan !== '1+1+1+1').length).toBeLessThan(20)
})

test('without sequences, no step is planned', () => {
  expect(new StepPlanner().plan([])).toEqual([])
})
