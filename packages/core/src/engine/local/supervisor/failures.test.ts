import { expect, test } from 'vitest'
import { Failures } from './failures.ts'

function failuresAt(clock: { ms: number }) {
  return new Failures(() => clock.ms)
}

const check = (failures: Failures) => () => failures.check('fp', 'some:latest')

test('a file that crashes the loader twice in a row is left alone, and tried again after ten minutes', () => {
  const clock = { ms: 0 }
  const failures = failuresAt(clock)
  failures.onLoadCrash('fp')
  expect(check(failures)).not.toThrow()
  failures.onLoadCrash('fp')

  expect(check(failures)).toThrow('has crashed the engine 2 times while it was loaded')
  expect(() => failures.check('other', 'other:latest')).not.toThrow()
  clock.ms = 10 * 60_000
  expect(check(failures)).not.toThrow()
})

test('a load that succeeds forgives the crash before it', () => {
  const failures = failuresAt({ ms: 0 })
  failures.onLoadCrash('fp')
  failures.onLoaded('fp')
  failures.onLoadCrash('fp')

  expect(check(failures)).not.toThrow()
})

test('restarts are free at first, then wait longer and longer, and say how long', () => {
  const clock = { ms: 0 }
  const failures = failuresAt(clock)
  failures.onEnd('fp')
  failures.onEnd('fp')
  expect(check(failures)).not.toThrow()

  for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    failures.onEnd('fp')
    expect(check(failures)).toThrow(
      expect.objectContaining({ code: 'overloaded', details: { retryAfterMs: pauseMs } }),
    )
    clock.ms += pauseMs
    expect(check(failures)).not.toThrow()
  }
})

test('a model that says something starts anew', () => {
  const failures = failuresAt({ ms: 0 })
  for (let i = 0; i < 9; i++) failures.onEnd('fp')

  failures.onText('fp')

  expect(check(failures)).not.toThrow()
})
