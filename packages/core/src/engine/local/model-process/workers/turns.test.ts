import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { Turns } from './turns.ts'

const workMs = 10
/** Four times the duration of the work. */
const restMs = 4 * workMs

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Runs pieces of work of one tenant, and records when they start, in ms. */
function createWorld({ isDecoding = true } = {}) {
  const decoding = { isDecoding }
  const turns = new Turns(() => decoding.isDecoding)
  const budget = budgetOf()
  const from = performance.now()
  const starts: number[] = []
  const work = (): void => {
    starts.push(performance.now() - from)
    vi.advanceTimersByTime(workMs)
  }
  return { decoding, turns, budget, starts, work }
}

/** Lets all work run whose turn has come. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate()
}

describe('while the model decodes', () => {
  test('work rests four times its duration', async () => {
    const { turns, budget, starts, work } = createWorld()
    const all = [1, 2, 3].map(() => turns.run(budget, work))
    await settle()

    vi.advanceTimersByTime(restMs - 1)
    await settle()
    expect(starts).toEqual([0])

    vi.advanceTimersByTime(1)
    await settle()
    expect(starts).toEqual([0, workMs + restMs])

    vi.advanceTimersByTime(restMs)
    await Promise.all(all)
    expect(starts).toEqual([0, workMs + restMs, 2 * (workMs + restMs)])
  })

  test('work that fails also rests', async () => {
    const { turns, budget, starts, work } = createWorld()
    const failed = turns.run(budget, () => {
      work()
      throw new Error('a mistake')
    })
    await expect(failed).rejects.toThrow('a mistake')

    const next = turns.run(budget, work)
    await settle()
    expect(starts).toEqual([0])

    vi.advanceTimersByTime(restMs)
    await next
    expect(starts).toEqual([0, workMs + restMs])
  })

  test('short work runs meanwhile, and does not rest', async () => {
    const { turns, budget, starts, work } = createWorld()
    const long = [1, 2].map(() => turns.run(budget, work))
    await long[0]

    const short: string[] = []
    await Promise.all(['a', 'b', 'c'].map((name) => turns.run(budget, () => short.push(name), true)))

    expect(short).toEqual(['a', 'b', 'c'])
    expect(starts).toEqual([0])
    vi.advanceTimersByTime(restMs)
    await long[1]
  })
})

test('without decoding, work does not rest', async () => {
  const { turns, budget, starts, work } = createWorld({ isDecoding: false })

  await Promise.all([1, 2, 3].map(() => turns.run(budget, work)))

  expect(starts).toEqual([0, workMs, 2 * workMs])
})

test('work that arrives after decoding has ended does not wait for the end of the rest', async () => {
  const { decoding, turns, budget, starts, work } = createWorld()
  await turns.run(budget, work)
  decoding.isDecoding = false

  await turns.run(budget, work)

  expect(starts).toEqual([0, workMs])
})

test('work that lasts long rests for 100 ms at most', async () => {
  const { turns, budget, starts, work } = createWorld()
  const long = turns.run(budget, () => void vi.advanceTimersByTime(1_000))
  const next = turns.run(budget, work)
  await long
  vi.advanceTimersByTime(100)
  await next
  expect(starts).toEqual([1_100])
})

test('the pause ends even if the timer fires a moment too early', async () => {
  const { turns, budget, starts, work } = createWorld()
  const all = [1, 2].map(() => turns.run(budget, work))
  await all[0]
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + restMs - 0.5)
  vi.advanceTimersByTime(restMs)
  clock.mockRestore()
  vi.advanceTimersByTime(1)
  await Promise.all(all)
  expect(starts).toHaveLength(2)
})
