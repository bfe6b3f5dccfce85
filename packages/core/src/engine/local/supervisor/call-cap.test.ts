import { expect, test } from 'vitest'
import { CallCap } from './call-cap.ts'

const overloaded = { code: 'overloaded', details: { retryAfterMs: 5_000 } }

const largest = { maxCalls: 1_000, maxPromptCharacters: 1_000_000 }

test('as many calls as allowed are admitted, the next is rejected until one has ended', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 3 })
  const ends: (() => void)[] = []
  const calls = Array.from({ length: 3 }, () =>
    cap.run('ann', 1, () => new Promise<void>((resolve) => ends.push(resolve))),
  )

  await expect(cap.run('ann', 1, async () => 'admitted')).rejects.toMatchObject(overloaded)
  ends[0]?.()
  await calls[0]

  await expect(cap.run('ann', 1, async () => 'admitted')).resolves.toBe('admitted')
})

test('the total size of requests is bounded, and a failed call frees its share', async () => {
  const cap = new CallCap(largest)
  const large = 600_000
  let fail = (_error: Error): void => {}
  const call = cap.run('ann', large, () => new Promise((_resolve, reject) => (fail = reject)))

  await expect(cap.run('ann', large, async () => 'admitted')).rejects.toMatchObject(overloaded)
  await expect(cap.run('ann', 10, async () => 'admitted')).resolves.toBe('admitted')
  fail(new Error('no'))
  await expect(call).rejects.toThrow('no')

  await expect(cap.run('ann', large, async () => 'admitted')).resolves.toBe('admitted')
})

/** Starts calls that do not end. */
function fill(cap: CallCap, tenant: string, count: number, characters = 1): void {
  for (let call = 0; call < count; call++) void cap.run(tenant, characters, () => new Promise(() => {}))
}
const isAdmitted = (cap: CallCap, tenant: string, characters = 1): Promise<boolean> =>
  cap.run(tenant, characters, async () => true).catch(() => false)

test('a tenant with all calls leaves the others their shares', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 4 })
  fill(cap, 'ann', 4)

  fill(cap, 'ben', 2)

  expect(await isAdmitted(cap, 'ann')).toBe(false)
  expect(await isAdmitted(cap, 'ben')).toBe(false)
  expect(await isAdmitted(cap, 'cleo')).toBe(true)
})

test('a tenant with large prompts leaves the others room for theirs', async () => {
  const cap = new CallCap(largest)
  fill(cap, 'ann', 2, 500_000)

  expect(await isAdmitted(cap, 'ann')).toBe(false)
  fill(cap, 'ben', 1, 400_000)
  expect(await isAdmitted(cap, 'ben', 50_000)).toBe(true)
  expect(await isAdmitted(cap, 'ben', 200_000)).toBe(false)
})

test('each tenant gets one call, even for a prompt above its share', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 3 })
  fill(cap, 'ann', 2, 500_000)
  fill(cap, 'ben', 1, 1_000_000)

  expect(await isAdmitted(cap, 'cleo', 1_000_000)).toBe(true)
  expect(await isAdmitted(cap, 'ben')).toBe(false)
})

test('no more tenants than calls are admitted, until all calls of one tenant have ended', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 3 })
  fill(cap, 'ann', 3)
  let end = (): void => {}
  const call = cap.run('ben', 1, () => new Promise<void>((resolve) => (end = resolve)))
  fill(cap, 'cleo', 1)

  await expect(cap.run('dan', 1, async () => 'admitted')).rejects.toMatchObject(overloaded)
  end()
  await call

  expect(await isAdmitted(cap, 'dan')).toBe(true)
})

test('beyond twice the total size, each tenant gets only calls with short prompts', async () => {
  const cap = new CallCap(largest)
  for (const tenant of ['ann', 'ben', 'cleo']) fill(cap, tenant, 1, 1_000_000)

  await expect(cap.run('dan', 1_001, async () => 'admitted')).rejects.toMatchObject(overloaded)
  fill(cap, 'dan', 1, 600)

  expect(await isAdmitted(cap, 'dan', 400)).toBe(true)
  expect(await isAdmitted(cap, 'dan', 401)).toBe(false)
})

test('tenants that take all they get stay below four times the total size', async () => {
  const maxCalls = 20
  const cap = new CallCap({ ...largest, maxCalls })
  const admitted = new Map<string, number>()
  const take = (tenant: string, characters: number): void =>
    void cap
      .run(tenant, characters, () => {
        admitted.set(tenant, (admitted.get(tenant) ?? 0) + characters)
        return new Promise(() => {})
      })
      .catch(() => {})

  for (let tenant = 0; tenant < 2 * maxCalls; tenant++)
    for (let characters = 1_000_000; characters > 1; characters /= 2) take(`tenant ${tenant}`, characters)

  expect(admitted.size).toBe(maxCalls)
  const total = [...admitted.values()].reduce((sum, characters) => sum + characters)
  expect(total).toBeGreaterThan(2_000_000)
  expect(total).toBeLessThan(4_000_000)
})

test('tenants that take all they get have at most three times as many calls as one tenant alone', async () => {
  const maxCalls = 100
  const cap = new CallCap({ ...largest, maxCalls })
  let calls = 0
  const count = (): Promise<never> => {
    calls++
    return new Promise(() => {})
  }

  for (let tenant = 0; tenant < maxCalls; tenant++)
    for (let call = 0; call < maxCalls; call++) cap.run(`tenant ${tenant}`, 1, count).catch(() => {})

  expect(calls).toBeGreaterThan(2 * maxCalls)
  expect(calls).toBeLessThanOrEqual(3 * maxCalls)
})

test('a prompt that is longer than all prompts together may be never fits, so it is invalid', async () => {
  const cap = new CallCap(largest)

  await expect(cap.run('ann', 1_000_001, async () => 'admitted')).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/1000001 characters.*1000000.*local\.maxPromptCharacters/),
  })
  expect(await isAdmitted(cap, 'ann', 1_000_000)).toBe(true)
})

test('tenants without calls are forgotten', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 2 })
  for (let call = 0; call < 100; call++) expect(await isAdmitted(cap, `tenant ${call}`)).toBe(true)
  fill(cap, 'ann', 2)
  fill(cap, 'ben', 1)

  expect(await isAdmitted(cap, 'ben')).toBe(false)
})
