import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { digestOf } from '../ollama-store/digest.ts'
import { FollowingHash } from './following-hash.ts'

let folder: string
let file: FileHandle
const bytes = Buffer.alloc(3_000_000, 'some bytes, ')
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hash-'))
  file = await open(join(folder, 'file'), 'w+')
})
afterEach(async () => {
  await file.close()
  await rm(folder, { recursive: true })
})

const write = (from: number, to: number) => file.write(bytes, from, to - from, from)
const { signal } = new AbortController()

test('bytes after a gap are not hashed until the gap is filled', async () => {
  let front = 0
  const hash = new FollowingHash(file, () => front, signal)
  await write(1_000_000, 3_000_000)
  await hash.advance()
  await write(0, 1_000_000)
  front = 700_001
  await hash.advance()
  front = bytes.length

  expect(await hash.digest()).toBe(digestOf(bytes))
})

test('concurrent calls share the work', async () => {
  await write(0, bytes.length)
  const hash = new FollowingHash(file, () => bytes.length, signal)

  await Promise.all([hash.advance(), hash.advance(), hash.advance()])

  expect(await hash.digest()).toBe(digestOf(bytes))
})

test('a file shorter than reported is an error', async () => {
  await write(0, 1_000)
  const hash = new FollowingHash(file, () => 1_001, signal)

  await expect(hash.digest()).rejects.toThrow('shorter')
})

test('stop() and an abort end the reading', async () => {
  await write(0, bytes.length)
  const leaving = new AbortController()
  const hash = new FollowingHash(file, () => bytes.length, leaving.signal)

  leaving.abort(new Error('gone'))

  await expect(hash.digest()).rejects.toThrow('gone')
  await hash.stop()
})
