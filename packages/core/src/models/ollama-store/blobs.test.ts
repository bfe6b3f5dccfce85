import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BlobStore } from './blobs.ts'
import { blobName, digestOf } from './digest.ts'

let root: string
let other: string
const { signal } = new AbortController()

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'blobs-'))
  other = await mkdtemp(join(tmpdir(), 'blobs-'))
})

afterEach(async () => {
  await rm(root, { recursive: true })
  await rm(other, { recursive: true })
})

const text = 'the bytes of a blob'
const digest = digestOf(text)
async function* inPieces(bytes: string): AsyncGenerator<Uint8Array> {
  for (const piece of bytes.match(/.{1,3}/gs) ?? []) yield Buffer.from(piece)
}
const files = () => readdir(join(root, 'blobs'))

test('a blob is stored under its digest', async () => {
  const blobs = new BlobStore([root])

  await blobs.write(digest, inPieces(text), signal)

  const found = await blobs.find(digest)
  expect(found).toEqual({ path: join(root, 'blobs', blobName(digest)), sizeBytes: text.length })
  expect(await readFile(found?.path ?? '', 'utf8')).toBe(text)
  expect((await stat(found?.path ?? '')).mode & 0o777).toBe(0o644)
  expect(await files()).toEqual([blobName(digest)])
})

test('bytes with another digest are rejected, and stored under that digest', async () => {
  const blobs = new BlobStore([root])

  const written = blobs.write(digest, inPieces('other bytes'), signal)

  await expect(written).rejects.toMatchObject({
    code: 'invalid_request',
    message: `digest mismatch, expected "${digest}", got "${digestOf('other bytes')}"`,
  })
  expect(await files()).toEqual([blobName(digestOf('other bytes'))])
})

test('a failed or aborted write leaves nothing', async () => {
  const blobs = new BlobStore([root])
  const controller = new AbortController()
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('the')
    throw new Error('gone')
  }
  async function* leaving(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('the')
    controller.abort(new Error('left'))
    yield Buffer.from(' bytes')
  }

  await expect(blobs.write(digest, failing(), signal)).rejects.toThrow('gone')
  await expect(blobs.write(digest, leaving(), controller.signal)).rejects.toThrow('left')

  expect(await files()).toEqual([])
})

test('an abort ends a stalled write', async () => {
  const blobs = new BlobStore([root])
  const controller = new AbortController()
  async function* stalling(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('the')
    controller.abort(new Error('left'))
    await new Promise(() => {})
  }

  await expect(blobs.write(digest, stalling(), controller.signal)).rejects.toThrow('left')

  expect(await files()).toEqual([])
})

test('an existing blob is not rewritten, but its date is renewed', async () => {
  const blobs = new BlobStore([root])
  const first = await blobs.add(Buffer.from(text))
  await utimes(join(root, 'blobs', blobName(digest)), new Date(0), new Date(0))

  const second = await blobs.add(Buffer.from(text))

  expect(first).toEqual({ digest, sizeBytes: text.length, isNew: true })
  expect(second).toEqual({ ...first, isNew: false })
  expect((await blobs.writtenAt(digest))?.getTime()).toBeGreaterThan(Date.now() - 60_000)
})

test('touch() finds a blob and renews its date', async () => {
  const blobs = new BlobStore([root])
  await blobs.add(Buffer.from(text))
  await utimes(join(root, 'blobs', blobName(digest)), new Date(0), new Date(0))

  expect(await blobs.touch(digest)).toEqual(await blobs.find(digest))
  expect((await blobs.writtenAt(digest))?.getTime()).toBeGreaterThan(Date.now() - 60_000)
  expect(await blobs.touch(digestOf('nowhere'))).toBeUndefined()
})

test('blobs of other folders are found, and not written again', async () => {
  await new BlobStore([other]).add(Buffer.from(text))
  const blobs = new BlobStore([root, other])

  const { isNew } = await blobs.add(Buffer.from(text))

  expect(isNew).toBe(false)
  expect((await blobs.find(digest))?.path).toBe(join(other, 'blobs', blobName(digest)))
})

test('concurrent writers of one blob leave one file', async () => {
  const stores = [new BlobStore([root]), new BlobStore([root])]

  await Promise.all([...stores, ...stores].map((one) => one.write(digest, inPieces(text), signal)))

  expect(await files()).toEqual([blobName(digest)])
  expect(await readFile(join(root, 'blobs', blobName(digest)), 'utf8')).toBe(text)
})

test('a slow writer blocks neither a download nor another writer', async () => {
  const blobs = new BlobStore([root])
  const bytes = new TransformStream<Uint8Array, Uint8Array>()
  const sender = bytes.writable.getWriter()
  const slow = blobs.write(digest, bytes.readable, signal)
  // This write resolves when the store has read the bytes.
  await sender.write(Buffer.from('the'))

  expect(await blobs.withDownloadLock(digest, AbortSignal.timeout(2_000), async () => 'locked')).toBe(
    'locked',
  )
  await blobs.write(digest, inPieces(text), AbortSignal.timeout(2_000))
  expect((await blobs.find(digest))?.sizeBytes).toBe(text.length)

  await sender.write(Buffer.from(text.slice(3)))
  await sender.close()
  await slow
  expect(await files()).toEqual([blobName(digest)])
})

test('a file is copied in one read', async () => {
  const blobs = new BlobStore([root])
  const path = join(other, 'some.gguf')
  await writeFile(path, text)

  expect(await blobs.copy(path, signal)).toEqual({ digest, sizeBytes: text.length, isNew: true })
  expect(await blobs.copy(path, signal)).toEqual({ digest, sizeBytes: text.length, isNew: false })
  expect(await files()).toEqual([blobName(digest)])
  await expect(new BlobStore([root], { maxBytes: text.length }).copy(path, signal)).rejects.toMatchObject({
    code: 'too_large',
  })
  await expect(blobs.copy(path, AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
  expect(await files()).toEqual([blobName(digest)])
})

test('a complete, correct download becomes a blob', async () => {
  const blobs = new BlobStore([root])
  const path = await blobs.partialPath(digest)
  await writeFile(path, text)

  await blobs.commit(digest, signal)

  expect(path).toBe(join(root, 'blobs', `${blobName(digest)}-partial`))
  expect(await files()).toEqual([blobName(digest)])
})

test('a download with a wrong digest is removed', async () => {
  const blobs = new BlobStore([root])
  await writeFile(await blobs.partialPath(digest), 'other bytes')

  const committed = blobs.commit(digest, signal)

  await expect(committed).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining('digest mismatch, file must be downloaded again'),
  })
  expect(await files()).toEqual([])
})

test.each([
  ['that is missing', async () => {}, 'missing'],
  ['that is too large', async () => void (await new BlobStore([root]).add(Buffer.from(text))), 'too large'],
  [
    'whose bytes have changed',
    async () => {
      await mkdir(join(root, 'blobs'))
      await writeFile(join(root, 'blobs', blobName(digest)), 'changed')
    },
    'damaged',
  ],
])('a blob %s is rejected', async (_what, arrange, message) => {
  await arrange()

  const read = new BlobStore([root]).read(digest, 10)

  await expect(read).rejects.toMatchObject({ code: 'upstream', message: expect.stringContaining(message) })
})

test('writes and reservations respect the byte limit', async () => {
  const blobs = new BlobStore([root], { maxBytes: 100 })
  await blobs.add(Buffer.alloc(60))
  const tooLarge = { code: 'too_large', message: expect.stringContaining('100 bytes') }

  await expect(blobs.expectSpace(41)).rejects.toMatchObject(tooLarge)
  await expect(blobs.add(Buffer.alloc(41))).rejects.toMatchObject(tooLarge)
  await expect(blobs.expectSpace(40)).resolves.toBeUndefined()
  await expect(blobs.add(Buffer.alloc(40))).resolves.toMatchObject({ isNew: true })

  expect(await files()).toHaveLength(2)
})

test('concurrent writers do not exceed the byte limit', async () => {
  const one = new BlobStore([root], { maxBytes: 100 })
  const two = new BlobStore([root], { maxBytes: 100 })

  await Promise.allSettled([one.add(Buffer.alloc(60, 1)), two.add(Buffer.alloc(60, 2))])

  expect((await files()).length).toBeLessThan(2)
})

test('only one of two downloads reserves the last bytes', async () => {
  const digests = [digestOf('one'), digestOf('two')]
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })

  const claims = digests.map((one) => {
    const blobs = new BlobStore([root], { maxBytes: 100 })
    return new Promise((resolve, reject) => {
      const work = (): Promise<void> =>
        blobs
          .reserve(one, 60, signal)
          .then(resolve, reject)
          .then(() => held)
      blobs.withDownloadLock(one, signal, work).catch(reject)
    })
  })

  const settled = await Promise.allSettled(claims)
  expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(settled.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'too_large' } })
  expect((await files()).filter((file) => file.endsWith('-partial'))).toHaveLength(1)
  release()
})

test('the reservation of an abandoned download expires', async () => {
  const blobs = new BlobStore([root], { maxBytes: 100 })
  await blobs.withDownloadLock(digest, signal, async () => {
    await blobs.reserve(digest, 60, signal)
    await expect(blobs.expectSpace(41)).rejects.toMatchObject({ code: 'too_large' })
  })

  await expect(blobs.expectSpace(100)).resolves.toBeUndefined()
})

test('more bytes than the free disk space are rejected', async () => {
  await expect(new BlobStore([root]).expectSpace(2 ** 52)).rejects.toMatchObject({ code: 'too_large' })
})

test('a store without a folder is read-only', async () => {
  await expect(new BlobStore([]).add(Buffer.from(text))).rejects.toMatchObject({ code: 'permission' })
})
