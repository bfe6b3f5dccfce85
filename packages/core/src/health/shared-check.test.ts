import { expect, test } from 'vitest'
import { SharedCheck } from './shared-check.ts'

test('callers at the same time share one run, and its result is kept', async () => {
  const shared = new SharedCheck({ deadlineMs: 1_000, keptMs: 60_000 })
  let runs = 0
  const check = async () => `problem ${++runs}`

  const problems = await Promise.all([shared.run(check), shared.run(check)])

  expect([...problems, await shared.run(check)]).toEqual(['problem 1', 'problem 1', 'problem 1'])
})

test('a further run uses the check that it gets, such as that of a model that was pulled again', async () => {
  const shared = new SharedCheck({ deadlineMs: 1_000, keptMs: 0 })

  expect(await shared.run(async () => 'old')).toBe('old')
  expect(await shared.run(async () => undefined)).toBeUndefined()
})

test('a check that exceeds the deadline is a problem, and no second one begins meanwhile', async () => {
  const shared = new SharedCheck({ deadlineMs: 10, keptMs: 0 })
  let runs = 0
  const hang = () => {
    runs++
    return new Promise<undefined>(() => {})
  }

  expect(await shared.run(hang)).toBe('No result within 0.01 s.')
  expect(await shared.run(hang)).toBe('No result within 0.01 s.')
  expect(runs).toBe(1)
})
