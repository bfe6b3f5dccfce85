import { expect, test, vi } from 'vitest'
import { ByteCache } from './byte-cache.ts'

test('concurrent calls share one read, and a failure is not cached', async () => {
  const read = vi.fn().mockRejectedValueOnce(new Error('busy')).mockResolvedValue('text')
  const cache = new ByteCache<string>()

  const failed = await Promise.allSettled([cache.get('a', read), cache.get('a', read)])

  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await cache.get('a', read)).toBe('text')
  expect(read).toHaveBeenCalledTimes(2)
})

test('a permanent failure is cached', async () => {
  const read = vi.fn().mockRejectedValue(new Error('damaged'))
  const cache = new ByteCache<string>(() => true)

  for (let call = 0; call < 2; call++) await expect(cache.get('a', read)).rejects.toThrow('damaged')

  expect(read).toHaveBeenCalledTimes(1)
})

test('a read that is evicted before it ends resolves for its callers', async () => {
  const cache = new ByteCache<number>()

  const values = Array.from({ length: 600 }, (_, index) =>
    cache.get(String(index), async () => {
      await new Promise(setImmediate)
      if (index === 1) throw new Error('gone')
      return index
    }),
  )

  const results = await Promise.allSettled(values)
  expect(results[0]).toEqual({ status: 'fulfilled', value: 0 })
  expect(results[1]).toMatchObject({ status: 'rejected', reason: { message: 'gone' } })
  expect(results[599]).toEqual({ status: 'fulfilled', value: 599 })
})

test('a value larger than the cache evicts no other', async () => {
  const read = vi.fn(async () => 'small')
  const cache = new ByteCache<string>()
  await cache.get('small', read)

  const large = await cache.get('large', async () => 'x'.repeat(40 * 1024 ** 2))

  expect(large.length).toBe(40 * 1024 ** 2)
  await cache.get('small', read)
  expect(read).toHaveBeenCalledTimes(1)
})

test('undefined is cached', async () => {
  const read = vi.fn(async () => undefined)
  const cache = new ByteCache<undefined>()

  for (let call = 0; call < 2; call++) expect(await cache.get('a', read)).toBeUndefined()

  expect(read).toHaveBeenCalledTimes(1)
})
