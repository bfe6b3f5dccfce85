import { expect, test } from 'vitest'
import { PrefixIndex, type PromptPrefix } from './prefix-index.ts'

const lease = (first: number, more: Partial<PromptPrefix> = {}): PromptPrefix => ({
  tenant: 'ann',
  tokens: [first, first + 1, first + 2],
  sizeBytes: 100,
  ...more,
})

/** An index with a scripted clock and a list of evicted prefixes. */
function leasesOf(maxBytes: number) {
  const ended: PromptPrefix[] = []
  const clock = { now: 1 }
  const leases = new PrefixIndex<PromptPrefix>(
    maxBytes,
    (one) => ended.push(one),
    () => clock.now,
  )
  return { leases, ended, clock }
}

test('finds the longest prefix of a prompt first, and for its tenant only', () => {
  const { leases } = leasesOf(1_000)
  const [short, long] = [lease(1, { tokens: [1, 2] }), lease(1)]
  for (const one of [short, long, lease(1, { tokens: [1, 2, 4] })]) leases.add(one)

  expect(leases.findPrefixes('ann', [1, 2, 3, 5])).toEqual([long, short])
  expect(leases.findPrefixes('ann', [1, 2])).toEqual([short])
  expect(leases.findPrefixes('ben', [1, 2, 3, 5])).toEqual([])
  expect(leases.get('ann', [1, 2])).toBe(short)
  expect(leases.get('ben', [1, 2])).toBeUndefined()
})

test('does not confuse the name of a tenant with tokens', () => {
  const { leases } = leasesOf(1_000)
  leases.add(lease(1, { tenant: '', tokens: [0x61616161, 1] }))
  leases.add(lease(1, { tenant: 'aaaa', tokens: [1] }))

  expect(leases.sizeBytes).toBe(200)
})

test('restarts the lifetime with each use', () => {
  const { leases, ended, clock } = leasesOf(1_000)
  clock.now = 40_000
  const one = lease(1)
  leases.add(one)
  clock.now = 339_000
  expect(leases.get('ann', one.tokens)).toBe(one)
  leases.renew(one)

  clock.now = 638_000
  expect(leases.findPrefixes('ann', one.tokens)).toEqual([one])
  clock.now = 640_000
  expect(leases.findPrefixes('ann', one.tokens)).toEqual([])
  leases.add(lease(5))
  expect(ended).toEqual([one])
})

test('keeps a prefix with the lifetime `1h` for an hour', () => {
  const { leases, clock } = leasesOf(1_000)
  const one = lease(1, { lifetime: '1h' })
  leases.add(one)

  clock.now = 59 * 60_000
  expect(leases.get('ann', one.tokens)).toBe(one)
  clock.now = 61 * 60_000
  expect(leases.get('ann', one.tokens)).toBeUndefined()
})

test('evicts prefixes without a breakpoint first, and then the least recently used', () => {
  const { leases, ended } = leasesOf(300)
  const [asked, other, unasked] = [lease(1, { lifetime: '5m' }), lease(2, { lifetime: '1h' }), lease(3)]
  for (const one of [asked, other, unasked]) expect(leases.add(one)).toBe(true)
  leases.renew(asked)

  expect(leases.add(lease(4, { sizeBytes: 200 }))).toBe(false)
  expect(ended).toEqual([])
  expect(leases.add(lease(5, { lifetime: '5m', sizeBytes: 200 }))).toBe(true)

  expect(ended).toEqual([unasked, other])
  expect(leases.sizeBytes).toBe(300)
})

test('rejects a prefix that exceeds the whole budget, and evicts nothing', () => {
  const { leases, ended } = leasesOf(300)
  leases.add(lease(1))

  expect(leases.add(lease(2, { lifetime: '5m', sizeBytes: 301 }))).toBe(false)

  expect([ended, leases.sizeBytes]).toEqual([[], 100])
})

test('evicts everything when it is cleared', () => {
  const { leases, ended } = leasesOf(300)
  leases.add(lease(1))
  leases.add(lease(2))

  leases.clear()

  expect([ended.length, leases.sizeBytes]).toEqual([2, 0])
})

test('counts what was dropped by its reason, and leaves out what was replaced', () => {
  const { leases, clock } = leasesOf(300)
  leases.add(lease(1))
  leases.add(lease(1, { sizeBytes: 120 }))
  expect(leases.evicted.memory.states).toBe(0)

  leases.add(lease(2, { sizeBytes: 250 }))
  clock.now = 400_000
  leases.add(lease(3, { sizeBytes: 30 }))
  leases.add(lease(4, { tenant: 'ben', sizeBytes: 40 }))
  leases.deleteTenant('ben')

  expect(leases.evicted).toEqual({
    memory: { states: 1, bytes: 120 },
    expired: { states: 1, bytes: 250 },
    deleted: { states: 1, bytes: 40 },
  })
})

test('deletes the prefixes of one tenant', () => {
  const { leases, ended } = leasesOf(1_000)
  const [own, other] = [lease(1), lease(1, { tenant: 'ben' })]
  for (const one of [own, lease(5, { lifetime: '1h' }), other]) leases.add(one)

  expect(leases.deleteTenant('ann')).toBe(2)

  expect(ended).toHaveLength(2)
  expect(leases.get('ann', own.tokens)).toBeUndefined()
  expect(leases.get('ben', other.tokens)).toBe(other)
  expect(leases.deleteTenant('ann')).toBe(0)
})
