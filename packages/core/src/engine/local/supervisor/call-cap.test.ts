import { expect, test } from 'vitest'
import { CallCap } from './call-cap.ts'

const overloaded = { code: 'overloaded', details: { retryAfterMs: 5_000 } }

test('512 calls may be in, the next is refused, and gets in when one has ended', async () => {
  const crowd = new CallCap()
  const ends: (() => void)[] = []
  const calls = Array.from({ length: 512 }, () =>
    crowd.run(1, () => new Promise<void>((resolve) => ends.push(resolve))),
  )

  await expect(crowd.run(1, async () => 'in')).rejects.toMatchObject(overloaded)
  ends[0]?.()
  await calls[0]

  await expect(crowd.run(1, async () => 'in')).resolves.toBe('in')
})

test('what they hold is bounded, too, also where a call fails', async () => {
  const crowd = new CallCap()
  const large = 60 * 1024 * 1024
  let fail = (_error: Error): void => {}
  const call = crowd.run(large, () => new Promise((_resolve, reject) => (fail = reject)))

  await expect(crowd.run(large, async () => 'in')).rejects.toMatchObject(overloaded)
  await expect(crowd.run(10, async () => 'in')).resolves.toBe('in')
  fail(new Error('no'))
  await expect(call).rejects.toThrow('no')

  await expect(crowd.run(large, async () => 'in')).resolves.toBe('in')
})
