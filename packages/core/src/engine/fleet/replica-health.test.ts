import { expect, test } from 'vitest'
import { type HealthSettings, ReplicaHealth } from './replica-health.ts'

function create(settings: Partial<HealthSettings> = {}, hasSlowStart = false) {
  const clock = { ms: 1_000_000 }
  const health = new ReplicaHealth(
    {
      ...{ maxFailures: 3, slowStartMs: 10_000, hasProbes: true, random: () => 0.5, now: () => clock.ms },
      ...settings,
    },
    hasSlowStart,
  )
  const pass = (ms: number): void => {
    clock.ms += ms
  }
  return { health, pass, clock }
}

test('three failures in a row eject a replica, and a success between them does not count', () => {
  const { health } = create()

  for (const failure of ['failed', 'lost'] as const) health.onFailure(failure)
  health.onSuccess()
  for (const failure of ['stalled', 'invalid'] as const) health.onFailure(failure)
  expect(health.state).toBe('ready')
  health.onFailure('failed')

  expect(health.state).toBe('ejected')
  expect(health.ejections).toBe(1)
})

test('a replica that cannot be reached is ejected at once', () => {
  const { health } = create()

  health.onFailure('unreachable')

  expect(health.state).toBe('ejected')
})

test('a probe ends the ejection after its time, and the replica starts slowly', () => {
  const { health, pass } = create()
  health.onFailure('unreachable')

  pass(999)
  health.onProbe(true)
  expect(health.state).toBe('ejected')
  pass(1)
  health.onProbe(true)

  expect([health.state, health.weight]).toEqual(['starting', 0.1])
  pass(5_000)
  expect(health.weight).toBe(0.5)
  pass(5_000)
  expect([health.state, health.weight]).toEqual(['ready', 1])
})

test('each ejection is twice as long, up to a minute, and the first one again after a minute of health', () => {
  const { health, pass, clock } = create()
  const lengths: number[] = []
  health.onFailure('unreachable')
  for (let index = 0; index < 8; index++) {
    const ms = (health.ejectedUntil ?? 0) - clock.ms
    lengths.push(ms)
    pass(ms)
    health.onProbe(false)
  }
  expect(lengths).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
  expect(health.ejections).toBe(1)

  pass(60_000)
  health.onProbe(true)
  pass(60_001)
  health.onFailure('unreachable')
  expect((health.ejectedUntil ?? 0) - clock.ms).toBe(1_000)
  expect(health.ejections).toBe(2)
})

test('a replica that has just returned is ejected again by one failure', () => {
  const { health, pass, clock } = create()
  health.onFailure('unreachable')
  pass(1_000)
  health.onProbe(true)

  health.onFailure('failed')

  expect((health.ejectedUntil ?? 0) - clock.ms).toBe(2_000)
})

test('many calls that fail together are one ejection', () => {
  const { health, clock } = create()

  for (let index = 0; index < 50; index++) health.onFailure('lost')

  expect(health.ejections).toBe(1)
  expect((health.ejectedUntil ?? 0) - clock.ms).toBe(1_000)
})

test('two failed probes in a row eject a replica', () => {
  const { health } = create()

  health.onProbe(false)
  health.onProbe(true)
  health.onProbe(false)
  expect(health.state).toBe('ready')
  health.onProbe(false)

  expect(health.state).toBe('ejected')
})

test('without probes, the time of an ejection ends it', () => {
  const { health, pass } = create({ hasProbes: false })
  health.onFailure('unreachable')

  pass(1_000)

  expect(health.state).toBe('starting')
})

test('a call that an ejected replica answers ends the ejection', () => {
  const { health } = create()
  health.onFailure('unreachable')

  health.onSuccess()

  expect(health.state).toBe('starting')
})

test('a replica without room is left alone as long as it says, at most half a minute, and is not ejected', () => {
  const { health, pass } = create()

  for (let index = 0; index < 10; index++) health.onFailure('overloaded', 3_000)
  expect(health.state).toBe('overloaded')
  pass(3_000)
  expect(health.state).toBe('ready')

  health.onFailure('overloaded', 1e9)
  pass(30_000)
  expect(health.state).toBe('ready')
  health.onFailure('missing')
  expect(health.state).toBe('ready')
})

test('a replica that joins later starts slowly', () => {
  expect(create({}, true).health.state).toBe('starting')
  expect(create({ slowStartMs: 0 }, true).health.state).toBe('ready')
})
