import { expect, test } from 'vitest'
import { FileCache } from './file-cache.ts'

const megabyte = 1024 ** 2
const model = (digest: string) => ({
  name: 'some:latest',
  path: 'some.gguf',
  sizeBytes: 0,
  modifiedAt: new Date(0),
  digest,
  isBuiltIn: false,
})

test('at most 64 MB are cached, and the least recently used result is evicted first', async () => {
  const read: string[] = []
  const cache = new FileCache(async ({ digest }) => {
    read.push(digest)
    return { metadata: { text: 'x'.repeat(9 * megabyte), numbers: [1, 2] } }
  })
  for (const digest of ['a', 'b', 'c', 'a', 'd']) await cache.get(model(digest))
  expect(read).toEqual(['a', 'b', 'c', 'd'])

  for (const digest of ['a', 'c', 'd', 'b']) await cache.get(model(digest))

  expect(read).toEqual(['a', 'b', 'c', 'd', 'b'])
})
