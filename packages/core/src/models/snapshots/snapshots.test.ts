import { createHash } from 'node:crypto'
import { appendFile, copyFile, mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import type { CreateModelRequest } from '../modelfile/create-request.ts'
import { digestOf } from '../ollama-store/digest.ts'
import { ModelStore, type ModelStoreOptions } from '../store.ts'

const root = emptyFolder()
let folder: string
let count = 0
/** A later day, since the store compares its clock with the dates of files. */
const now = new Date(`${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)}T23:59:00Z`)
const day = now.toISOString().slice(0, 10).replaceAll('-', '')

beforeEach(async () => {
  folder = join(root, `${count++}`)
  await mkdir(folder)
  vi.useFakeTimers({ toFake: ['Date'], now })
})
afterEach(() => void vi.useRealTimers())

const builtIn = { path: modelPath, builtInName: 'tiny' }
const open = (options: ModelStoreOptions = {}) => new ModelStore([{ path: folder }], options)

async function create(store: ModelStore, spec: CreateModelRequest): Promise<void> {
  for await (const _ of store.create(spec));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Creates the model `bob` with a system message, from a copy of the built-in model. */
async function createBob(store: ModelStore, system: string): Promise<string> {
  const bytes = await readFile(modelPath)
  const digest = digestOf(bytes)
  await store.blobs.write(digest, once(bytes), AbortSignal.timeout(60_000))
  await create(store, { name: 'bob', files: { 'model.gguf': digest }, system })
  return (await store.get('bob')).digest
}

const idsOf = async (store: ModelStore) => (await store.snapshots()).map(({ snapshot }) => snapshot?.id)
const systemOf = async (store: ModelStore, name: string) => (await store.get(name)).defaults?.system

describe('a model with a manifest', () => {
  test('gets the day on which it was first seen, which stays', async () => {
    await createBob(open(), 'A')
    const [first] = await open().snapshots()
    vi.setSystemTime(now.getTime() + 86_400_000)
    const store = open()

    expect(first).toMatchObject({
      name: 'bob:latest',
      snapshot: { id: `bob-${day}`, createdAt: now },
    })
    expect(await idsOf(store)).toEqual([`bob-${day}`])
    for (const id of [`bob-${day}`, `BOB-${day}:latest`])
      expect(await store.get(id)).toMatchObject({ name: 'bob:latest', snapshot: { id: `bob-${day}` } })
    expect((await store.get('bob')).snapshot).toBeUndefined()
  })

  test('two versions of one day get distinct ids, and a pruned version is not found', async () => {
    const store = open()
    const first = await createBob(store, 'A')
    await store.snapshots()
    const second = await createBob(store, 'B')

    expect(await idsOf(store)).toEqual([`bob-${day}-2`])
    expect(await systemOf(store, `bob-${day}-2`)).toBe('B')
    expect(await systemOf(store, `bob@sha256:${second.toUpperCase()}`)).toBe('B')
    for (const name of [`bob-${day}`, `bob@sha256:${first}`])
      await expect(store.get(name)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a replaced version is found while its blobs exist', async () => {
    const store = open({ prune: false })
    const first = await createBob(store, 'A')
    await store.snapshots()
    await createBob(store, 'B')

    expect((await idsOf(store)).sort()).toEqual([`bob-${day}`, `bob-${day}-2`])
    expect(await systemOf(open(), `bob-${day}`)).toBe('A')
    expect(await systemOf(open(), `bob@sha256:${first}`)).toBe('A')
    expect(await systemOf(store, 'bob')).toBe('B')
    await store.copy(`bob@sha256:${first}`, 'old')
    await create(store, { name: 'derived', from: `bob@sha256:${first}` })
    expect([await systemOf(store, 'old'), await systemOf(store, 'derived')]).toEqual(['A', 'A'])
    await expect(store.delete(`bob@sha256:${first}`)).rejects.toMatchObject({ code: 'not_found' })
    expect(await systemOf(store, 'bob')).toBe('B')
  })

  test('a model with the name of a snapshot wins', async () => {
    const store = open()
    await createBob(store, 'A')
    await store.snapshots()
    await store.copy('bob', `bob-${day}`)

    expect((await store.get(`bob-${day}`)).name).toBe(`bob-${day}:latest`)
    expect(await idsOf(store)).toEqual([`bob-${day}-${day}`])
  })

  test('a deleted model has no snapshot', async () => {
    const store = open()
    await createBob(store, 'A')
    const digest = (await store.get('bob')).digest
    await store.copy('bob', 'rob')
    await store.snapshots()
    await store.delete('bob')

    expect(await idsOf(store)).toEqual([`rob-${day}`])
    await expect(store.get(`bob@sha256:${digest}`)).rejects.toMatchObject({ code: 'not_found' })
    await expect(store.get(`bob-${day}`)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('is deleted by its digest, and not by another one', async () => {
    const store = open()
    const digest = await createBob(store, 'A')

    await expect(store.delete(`bob@sha256:${'0'.repeat(64)}`)).rejects.toMatchObject({ code: 'not_found' })
    await store.delete(`bob@sha256:${digest}`)
    await expect(store.get('bob')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('several processes agree on the ids', async () => {
    await createBob(open(), 'A')
    const stores = [open(), open(), open()]
    const lists = await Promise.all(stores.map(idsOf))

    expect(lists).toEqual(Array(3).fill([`bob-${day}`]))
    await createBob(open(), 'B')
    expect(await Promise.all(stores.map(idsOf))).toEqual(Array(3).fill([`bob-${day}-2`]))
    expect((await readdir(folder)).filter((file) => file.includes('snapshots'))).toEqual([
      'modelmount-snapshots.json',
    ])
  })
})

describe('a standalone file', () => {
  const sha256 = createHash('sha256')

  test('has a snapshot when it is hashed, which a list does not wait for', async () => {
    await copyFile(modelPath, join(folder, 'alone.gguf'))
    const store = open()
    const digest = createHash('sha256')
      .update(await readFile(modelPath))
      .digest('hex')

    expect(await idsOf(store)).toEqual([])
    await vi.waitFor(async () => expect(await idsOf(store)).toEqual([`alone-${day}`]), { timeout: 10_000 })
    expect((await store.get(`alone-${day}`)).name).toBe('alone:latest')
    expect((await store.get(`alone@sha256:${digest}`)).name).toBe('alone:latest')
    // Another process knows the digest at once.
    expect(await idsOf(open())).toEqual([`alone-${day}`])
    await store.close()
  })

  test('keeps its id when only its date changes, and gets another one with its contents', async () => {
    const path = join(folder, 'alone.gguf')
    await copyFile(modelPath, path)
    const store = open()
    const waitForIds = (...ids: string[]) =>
      vi.waitFor(async () => expect(await idsOf(store)).toEqual(ids), { timeout: 10_000 })
    await waitForIds(`alone-${day}`)

    await utimes(path, 1_000, 1_000)
    expect(await idsOf(store)).toEqual([])
    await waitForIds(`alone-${day}`)
    await appendFile(path, 'x')
    await waitForIds(`alone-${day}-2`)
    await expect(store.get(`alone-${day}`)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('is found by the digest of its contents before a list was read, and by the one that lists show', async () => {
    await copyFile(modelPath, join(folder, 'alone.gguf'))
    const store = open()
    const contents = sha256.update(await readFile(modelPath)).digest('hex')
    const { digest } = await store.get('alone')

    for (const one of [contents, digest])
      expect((await store.get(`alone@sha256:${one}`)).name).toBe('alone:latest')
    await expect(store.get(`alone@sha256:${'0'.repeat(64)}`)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('with adapters has a digest of all files', async () => {
    await copyFile(modelPath, join(folder, 'a.gguf'))
    await writeFile(join(folder, 'adapter.bin'), 'x')
    const source = (scale: number) => ({
      ...{ name: 'adapted', path: join(folder, 'a.gguf') },
      adapters: [{ path: join(folder, 'adapter.bin'), scale }],
    })
    const store = (scale: number) => new ModelStore([source(scale)], { snapshotFolders: [folder] })
    const waitForIds = (scale: number, ids: readonly string[]) => {
      const opened = store(scale)
      return vi.waitFor(async () => expect(await idsOf(opened)).toEqual(ids), { timeout: 10_000 })
    }

    await waitForIds(1, [`adapted-${day}`])
    await waitForIds(0.5, [`adapted-${day}-2`])
    await waitForIds(1, [`adapted-${day}`])
  })
})

describe('a folder that cannot be written', () => {
  test('keeps the snapshots beside the database', async () => {
    const other = join(folder, 'data')
    await mkdir(other)
    const lost = join(folder, 'no-such-folder')
    await copyFile(modelPath, join(folder, 'alone.gguf'))
    const make = () => new ModelStore([{ path: folder }], { snapshotFolders: [lost, other] })
    const store = make()
    await vi.waitFor(async () => expect(await idsOf(store)).toHaveLength(1), { timeout: 10_000 })

    vi.setSystemTime(now.getTime() + 86_400_000)

    expect(await idsOf(make())).toEqual([`alone-${day}`])
    expect(await readdir(other)).toEqual(['modelmount-snapshots.json'])
  })

  test('without a database, the date of the file takes the place of the day', async () => {
    const path = join(folder, 'alone.gguf')
    await copyFile(modelPath, path)
    await utimes(path, new Date('2026-01-02T10:00:00Z'), new Date('2026-01-02T10:00:00Z'))
    const make = () => new ModelStore([{ path: folder }], { snapshotFolders: [join(folder, 'none')] })
    const waitForId = (store: ModelStore) =>
      vi.waitFor(async () => expect(await idsOf(store)).toEqual(['alone-20260102']), { timeout: 10_000 })
    const store = make()

    await waitForId(store)
    await waitForId(make())
    expect((await store.get('alone-20260102')).name).toBe('alone:latest')
    expect(await readdir(folder)).toEqual(['alone.gguf'])
  })
})

test('a damaged file of snapshots is replaced', async () => {
  const path = join(folder, 'modelmount-snapshots.json')
  await createBob(open(), 'A')
  for (const text of ['{', '[]', '{"snapshots":[{"id":5}],"contents":{}}']) {
    await writeFile(path, text)
    expect(await idsOf(open())).toEqual([`bob-${day}`])
  }
  await rm(path)
  expect(await idsOf(open())).toEqual([`bob-${day}`])
})

test('a name that is no id does not read the file', async () => {
  const store = new ModelStore([builtIn], { snapshotFolders: [folder] })

  for (const name of ['tiny-2026112', 'tiny-20261122-x', 'x'.repeat(100_000)])
    await expect(store.get(name)).rejects.toMatchObject({ code: 'not_found' })
  expect(await readdir(folder)).toEqual([])
})
