import { beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../storage/open.ts'
import { type Keys, openKeys } from './keys.ts'

describe('with known tiers', () => {
  let keys: Keys

  beforeEach(async () => {
    const database = await openDatabase(':memory:')
    keys = await openKeys(database, () => ({ gold: {}, silver: {} }))
    return () => database.close()
  })

  test('creates a key with a known tier', async () => {
    expect((await keys.create({ name: 'ann', tier: 'gold' })).key.tier).toBe('gold')
  })

  test('rejects an unknown tier when a key is created or changed', async () => {
    const { key } = await keys.create({ name: 'ann', tier: 'gold' })
    const refusal = {
      code: 'invalid_request',
      message: 'tier: Expected one of gold, silver.',
      details: { param: 'tier' },
    }

    await expect(keys.create({ name: 'bob', tier: 'bronze' })).rejects.toMatchObject(refusal)
    await expect(keys.update(key.id, { tier: 'constructor' })).rejects.toMatchObject(refusal)
    expect((await keys.get(key.id)).tier).toBe('gold')
    expect(await keys.list()).toHaveLength(1)
  })

  test('changes and removes a tier', async () => {
    const { key } = await keys.create({ name: 'ann', tier: 'gold' })

    expect((await keys.update(key.id, { tier: 'silver' })).tier).toBe('silver')
    expect((await keys.update(key.id, { tier: null })).tier).toBeUndefined()
    expect((await keys.update(key.id, { name: 'bob' })).name).toBe('bob')
  })
})
