import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { BlobStore } from './blobs.ts'
import { digestOf } from './digest.ts'
import { configMediaType, mediaTypeOf } from './manifest.ts'
import { ManifestStore } from './manifests.ts'
import { displayName, type ModelName, parseModelName } from './name.ts'

vi.mock('node:fs/promises', async (actual) => {
  const files = await actual<typeof import('node:fs/promises')>()
  return { ...files, readFile: vi.fn(files.readFile) }
})

let root: string
let other: string
let blobs: BlobStore

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'manifests-'))
  other = await mkdtemp(join(tmpdir(), 'manifests-'))
  blobs = new BlobStore([root, other])
})

afterEach(async () => {
  await rm(root, { recursive: true })
  await rm(other, { recursive: true })
})

const named = (text: string) => parseModelName(text) as ModelName
const manifest = (...texts: string[]) => {
  const [config, ...layers] = texts.map((text, index) => ({
    mediaType: index === 0 ? configMediaType : mediaTypeOf('model'),
    digest: digestOf(text),
    size: text.length,
  }))
  return Buffer.from(JSON.stringify({ schemaVersion: 2, config, layers }, undefined, 3))
}
/** Writes a model with these blobs to the writable folder. */
async function make(manifests: ManifestStore, name: string, ...texts: string[]): Promise<void> {
  for (const text of texts) await blobs.add(Buffer.from(text))
  await manifests.write(named(name), manifest(...texts))
}
const shown = async (manifests: ManifestStore) =>
  (await manifests.list()).map(({ name }) => displayName(name)).sort()
async function put(path: string, bytes: string | Buffer, folder = root): Promise<void> {
  await mkdir(dirname(join(folder, 'manifests', path)), { recursive: true })
  await writeFile(join(folder, 'manifests', path), bytes)
}

test('a manifest is stored byte for byte under the four parts of its name', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'host:5000/team/Tiny:Q4', 'config', 'weights')

  const found = await manifests.find(named('host:5000/team/Tiny:Q4'))

  const bytes = await readFile(join(root, 'manifests', 'host:5000', 'team', 'Tiny', 'Q4'))
  expect(bytes).toEqual(manifest('config', 'weights'))
  expect(found).toMatchObject({ bytes, digest: digestOf(bytes), isReadOnly: false })
  expect(found?.manifest.layers).toEqual([
    { mediaType: mediaTypeOf('model'), digest: digestOf('weights'), size: 7 },
  ])
})

test.each(['tiny:q4', 'TINY:Q4', 'Tiny:q4', 'REGISTRY.ollama.ai/LIBRARY/tiny:q4'])(
  '%j finds an existing Tiny:Q4',
  async (name) => {
    const manifests = new ManifestStore([root], blobs)
    await make(manifests, 'Tiny:Q4', 'config')

    const found = await manifests.find(named(name))

    expect(found && displayName(found.name)).toBe('Tiny:Q4')
  },
)

test('a new name reuses existing spellings part by part', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'Tiny:Q4', 'config')

  await make(manifests, 'tINY:q4', 'config', 'new')
  await make(manifests, 'tiny:Other', 'config')

  expect(await shown(manifests)).toEqual(['Tiny:Other', 'Tiny:Q4'])
})

test('write() returns the replaced manifest', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'tiny', 'config', 'old')
  await blobs.add(Buffer.from('new'))

  const before = await manifests.write(named('tiny'), manifest('config', 'new'))

  expect(before?.layers.map(({ digest }) => digest)).toEqual([digestOf('old')])
})

test('a manifest with a missing blob is rejected', async () => {
  const manifests = new ManifestStore([root], blobs)

  const written = manifests.write(named('tiny'), manifest('nowhere'))

  await expect(written).rejects.toMatchObject({ code: 'conflict' })
  expect(await shown(manifests)).toEqual([])
})

test.each([
  ['no JSON', 'PK'],
  ['no manifest', '{"config":5}'],
  ['a digest with a path', String(manifest('config')).replace(/sha256:\w+/, 'sha256:../../secret')],
  ['a negative size', String(manifest('config')).replace(/"size": \d+/, '"size": -1')],
  [
    'more than a megabyte',
    manifest('config')
      .toString()
      .padEnd(1024 * 1024 + 1),
  ],
])('a damaged manifest (%s) is not listed, found or deleted, and stops all pruning', async (_what, bytes) => {
  const manifests = new ManifestStore([root], blobs)
  const path = 'registry.ollama.ai/library/broken/latest'
  await put(path, bytes)
  await make(manifests, 'tiny', 'config', 'weights')
  await manifests.remove(named('tiny'))

  const removed = await manifests.prune([digestOf('weights')])

  expect(await shown(manifests)).toEqual([])
  expect(await manifests.find(named('broken'))).toBeUndefined()
  expect(removed).toEqual([])
  expect(await readFile(join(root, 'manifests', path), 'utf8')).toBe(String(bytes))
})

test('a failed read is repeated', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'tiny', 'config')
  const tooMany = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  vi.mocked(readFile).mockRejectedValueOnce(tooMany)
  await manifests.find(named('tiny'))

  expect(await manifests.find(named('tiny'))).toBeDefined()
})

test('files with invalid names are ignored', async () => {
  const manifests = new ManifestStore([root], blobs)
  for (const path of [
    '.DS_Store',
    'a/b/c',
    'a/b/c.d/e/f',
    'registry.ollama.ai/lib.rary/x/latest',
    'h/n/m/.tmp',
  ])
    await put(path, manifest('config'))

  expect(await shown(manifests)).toEqual([])
})

test('remove() removes empty folders, too', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'user/tiny', 'config')
  await make(manifests, 'other', 'config')

  await manifests.remove(named('USER/tiny'))

  expect(await readdir(join(root, 'manifests', 'registry.ollama.ai'))).toEqual(['library'])
})

test('only unreferenced blobs are pruned', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'one', 'config', 'shared', 'own')
  await make(manifests, 'two', 'config', 'shared')
  await manifests.remove(named('one'))

  const removed = await manifests.prune(['config', 'shared', 'own'].map(digestOf))

  expect(removed).toEqual([digestOf('own')])
  expect(await blobs.find(digestOf('own'))).toBeUndefined()
  expect(await blobs.find(digestOf('shared'))).toBeDefined()
})

test.each([
  ['an unreadable folder', 'in the writable root', () => symlink('host', join(root, 'manifests', 'host'))],
  ['an unreadable folder', 'in a read-only root', () => symlink('manifests', join(other, 'manifests'))],
  ['a damaged manifest', 'in a read-only root', () => put('host/user/broken/latest', 'PK', other)],
])('nothing is pruned or swept if there is %s %s', async (_what, _where, arrange) => {
  const manifests = new ManifestStore([root, other], blobs)
  await make(manifests, 'tiny', 'config', 'weights')
  await manifests.remove(named('tiny'))
  await arrange()
  for (const text of ['config', 'weights'])
    await utimes((await blobs.find(digestOf(text)))?.path ?? '', new Date(0), new Date(0))

  const removed = await manifests.prune([digestOf('weights')])
  await manifests.sweep()

  expect(removed).toEqual([])
  for (const text of ['config', 'weights']) expect(await blobs.find(digestOf(text))).toBeDefined()
})

test('a process that lost its lock makes no further changes', async () => {
  const before = new ManifestStore([root], blobs)
  await make(before, 'tiny', 'config', 'weights')
  await make(before, 'other', 'config')
  await before.remove(named('tiny'))
  const weights = (await blobs.find(digestOf('weights')))?.path ?? ''
  await utimes(weights, new Date(0), new Date(0))
  const lock = join(root, 'manifests', '.lock')
  /** Replaces the lock file as another process would, while the store reads its blobs. */
  async function taken<T>(look: Promise<T>): Promise<T> {
    await rm(lock)
    await writeFile(lock, '')
    return look
  }
  class TakenOver extends BlobStore {
    override find: BlobStore['find'] = (digest) => taken(blobs.find(digest))
    override list: BlobStore['list'] = () => taken(blobs.list())
    override writtenAt: BlobStore['writtenAt'] = (digest) => taken(blobs.writtenAt(digest))
  }
  const manifests = new ManifestStore([root], new TakenOver([root]))

  for (const change of [
    () => manifests.write(named('other'), manifest('weights')),
    () => manifests.prune([digestOf('weights')]),
    () => manifests.sweep(),
  ]) {
    await expect(change()).rejects.toThrow('The lock was lost.')
    await rm(lock)
  }

  expect(await blobs.find(digestOf('weights'))).toBeDefined()
  expect((await before.find(named('other')))?.bytes).toEqual(manifest('config'))
})

test('a blob that was touched after its manifest was written is not pruned', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'tiny', 'config', 'weights')
  const blob = (await blobs.find(digestOf('weights')))?.path ?? ''
  const soon = new Date(Date.now() + 5_000)
  await utimes(blob, soon, soon)
  await manifests.remove(named('tiny'))

  const removed = await manifests.prune([digestOf('weights'), digestOf('config')])

  expect(removed).toEqual([digestOf('config')])
})

test('sweep() removes files unreferenced for an hour, and leftovers', async () => {
  const manifests = new ManifestStore([root], blobs)
  await make(manifests, 'tiny', 'config', 'weights')
  for (const text of ['old', 'fresh']) await blobs.add(Buffer.from(text))
  await writeFile(join(root, 'blobs', 'sha256-1234'), 'half')
  await writeFile(join(root, 'blobs', 'notes.txt'), 'mine')
  await writeFile(join(root, 'manifests', '.new-1234'), 'half')
  const old = new Date(Date.now() - 61 * 60_000)
  for (const file of await readdir(join(root, 'blobs')))
    if (!file.includes(digestOf('fresh').slice(7))) await utimes(join(root, 'blobs', file), old, old)

  await utimes(join(root, 'manifests', '.new-1234'), old, old)

  await manifests.sweep()

  expect(await readdir(join(root, 'manifests'))).toEqual(['registry.ollama.ai'])
  const left = ['config', 'weights', 'fresh'].map((text) => `sha256-${digestOf(text).slice(7)}`)
  expect((await readdir(join(root, 'blobs'))).sort()).toEqual(['notes.txt', ...left.sort()])
})

test.each([
  ['a part', '-partial-1'],
  ['the lock', '.lock'],
])('a download is not swept as long as %s of it is fresh', async (_what, fresh) => {
  const manifests = new ManifestStore([root], blobs)
  await blobs.add(Buffer.from('done'))
  const [live, dead] = ['live', 'dead'].map((text) => `sha256-${digestOf(text).slice(7)}`)
  const files = [live, dead].flatMap((blob) =>
    ['-partial', '-partial-0', '-partial-1', '.lock'].map((end) => blob + end),
  )
  for (const file of files) {
    await writeFile(join(root, 'blobs', file), '')
    if (file !== `${live}${fresh}`) await utimes(join(root, 'blobs', file), new Date(0), new Date(0))
  }

  await manifests.sweep()

  const left = await readdir(join(root, 'blobs'))
  expect(left.filter((file) => files.includes(file)).sort()).toEqual(files.slice(0, 4).sort())
})

test('later folders are read-only, and the first folder wins for equal names', async () => {
  await make(new ManifestStore([other], blobs), 'tiny', 'config', 'theirs')
  await make(new ManifestStore([other], blobs), 'more', 'config')
  const manifests = new ManifestStore([root, other], blobs)
  await make(manifests, 'tiny', 'config', 'ours')

  const [tiny, more] = [await manifests.find(named('tiny')), await manifests.find(named('more'))]
  await manifests.remove(named('more'))

  expect(tiny?.manifest.layers[0]?.digest).toBe(digestOf('ours'))
  expect(more).toMatchObject({ isReadOnly: true })
  expect(await manifests.find(named('more'))).toBeDefined()
})
