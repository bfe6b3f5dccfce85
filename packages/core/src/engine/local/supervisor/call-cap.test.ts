import { expect, test } from 'vitest'
import { CallCap } from './call-cap.ts'

const overloaded = { code: 'overloaded', details: { retryAfterMs: 5_000 } }

const largest = { maxCalls: 1_000, maxPromptCharacters: 1_000_000 }

test('as many calls as allowed are admitted, the next is rejected until one has ended', async () => {
  const cap = new CallCap({ ...largest, maxCalls: 3 })
  const ends: (() => void)[] = []
  const calls = Array.from({ length: 3 }, () =>
    cap.run(1, () => new Promise<void>((resolve) => ends.push(resolve))),
  )

  await expect(cap.run(1, async () => 'admitted')).rejects.toMatchObject(overloaded)
  ends[0]?.()
  await calls[0]

  await expect(cap.run(1, async () => 'admitted')).resolves.toBe('admitted')
})

test('the total size of requests is bounded, and a failed call frees its share', async () => {
  const cap = new CallCap(largest)
  const large = 600_000
  let fail = (_error: Error): void => {}
  const call = cap.run(large, () => new Promise((_resolve, reject) => (fail = reject)))

  await expect(cap.run(large, async () => 'admitted')).rejects.toMatchObject(overloaded)
  await expect(cap.run(10, async () => 'admitted')).resolves.toBe('admitted')
  fail(new Error('no'))
  await expect(call).rejects.toThrow('no')

  await expect(cap.run(large, async () => 'admitted')).resolves.toBe('admitted')
})
