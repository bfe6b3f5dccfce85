/**
 * D-4: servers compared keys with `==`, which takes longer the more letters are right, so that a key could be
 * guessed letter by letter.
 */
import { timingSafeEqual } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { openKeys } from '../../../packages/core/src/accounts/keys/keys.ts'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'

vi.mock('node:crypto', { spy: true })

const compared = vi.mocked(timingSafeEqual)
afterEach(() => compared.mockClear())

test('all keys with a right public id are compared in full, in constant time, as hashes of equal length', async () => {
  const database = await openDatabase(':memory:')
  const keys = await openKeys(database)
  const { secret } = await keys.create({ name: 'ann' })
  const changed = (index: number): string =>
    `${secret.slice(0, index)}${secret[index] === 'A' ? 'B' : 'A'}${secret.slice(index + 1)}`
  // The private part begins after `sk-mm-`, 16 digits and a hyphen.
  const wrong = [23, 30, 40, 50, secret.length - 1].map(changed)

  for (const key of wrong)
    await expect(keys.authenticate(key)).rejects.toMatchObject({ code: 'authentication' })
  expect(await keys.authenticate(secret)).toMatchObject({ key: { name: 'ann' } })

  expect(compared.mock.calls).toHaveLength(wrong.length + 1)
  for (const sides of compared.mock.calls)
    expect(sides.map((side) => (side as Uint8Array).byteLength)).toEqual([32, 32])
  // No side is a part of the key itself.
  for (const [side] of compared.mock.calls) expect(secret).not.toContain(String(side))
  await database.close()
})
