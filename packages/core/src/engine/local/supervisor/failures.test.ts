import { expect, test } from 'vitest'
import { Failures } from './failures.ts'

function failuresAt(clock: { ms: number }) {
  return new Failures(() => clock.ms)
}

const check = (failures: Failures) => () => failures.check('fp', 'some:latest')

test('a file that crashes the loader twice in a row is rejected for ten minutes', () => {
  const clock = { ms: 0 }
  const failures = failuresAt(clock)
  failures.onLoadCrash('fp')
  expect(check(failures)).not.toThrow()
  failures.onLoadCrash('fp')

  expect(check(failures)).toThrow('crashed the engine 2 times while loading')
  expect(() => failures.check('other', 'other:latest')).not.toThrow()
  clock.ms = 10 * 60_000
  expect(check(failures)).not.toThrow()
})

test('a successful load resets the crash count', () => {
  const failures = failuresAt({ ms: 0 })
  failures.onLoadCrash('fp')
  failures.onLoaded('fp')
  failures.onLoadCrash('fp')

  expect(check(failures)).not.toThrow()
})

test('the first restarts are immediate, later ones report growing pauses', () => {
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

test.each(['text', 'reasoning', 'tool-call', 'tool-arguments', 'end'] as const)(
  'an event of type %s resets the failures',
  (type) => {
    const failures = failuresAt({ ms: 0 })
    for (let i = 0; i < 9; i++) failures.onEnd('fp')

    failures.onEvent('fp', type)

    expect(check(failures)).not.toThrow()
  },
)

test.each(['start', 'prompt'] as const)('an event of type %s does not reset the failures', (type) => {
  const failures = failuresAt({ ms: 0 })
  for (let i = 0; i < 9; i++) failures.onEnd('fp')

  failures.onEvent('fp', type)

  expect(check(failures)).toThrow()
})

test('the failures of a thousand models are kept', () => {
  const failures = failuresAt({ ms: 0 })
  const crash = (fingerprint: string): void => {
    for (let i = 0; i < 2; i++) failures.onLoadCrash(fingerprint)
  }
  crash('fp')
  for (let model = 1; model < 1_000; model++) crash(`fp ${model}`)
  expect(check(failures)).toThrow()

  crash('one more')

  expect(check(failures)).not.toThrow()
})
