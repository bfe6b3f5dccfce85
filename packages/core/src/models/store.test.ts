import { copyFile, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gguf } from '../../../../test/support/gguf.ts'
import { expectSource, type ModelSource } from './ollama-store/standalone-files.ts'
import { ModelStore } from './store.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'modelmount-store-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function write(...names: string[]): Promise<void> {
  for (const name of names) await writeFile(join(folder, name), 'GGUF')
}

const names = async (store: ModelStore): Promise<string[]> => (await store.list()).map(({ name }) => name)

test('GGUF files are listed by their stems, sorted by name', async () => {
  await write('llama.gguf', 'gemma-2b.Q4_K_M.gguf', 'Phi.gguf')
  const store = new ModelStore([{ path: folder }])

  const listed = await names(store)

  expect(listed).toEqual(['Phi:latest', 'gemma-2b.Q4_K_M:latest', 'llama:latest'])
})

test('a model has path, size and date', async () => {
  const path = join(folder, 'tiny.gguf')
  await writeFile(path, 'GGUF1234')
  await utimes(path, new Date(0), new Date('2026-01-02T03:04:05Z'))
  const store = new ModelStore([{ path: folder }])

  const model = await store.get('tiny')

  expect(model).toEqual({
    name: 'tiny:latest',
    path,
    sizeBytes: 8,
    modifiedAt: new Date('2026-01-02T03:04:05Z'),
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    isBuiltIn: false,
  })
})

test('the digest changes only with the file', async () => {
  const path = join(folder, 'tiny.gguf')
  const digest = async () => (await new ModelStore([{ path: folder }]).get('tiny')).digest
  await writeFile(path, 'GGUF')
  await utimes(path, new Date(0), new Date(1_000))
  const first = await digest()
  const same = await digest()
  await utimes(path, new Date(0), new Date(2_000))
  const touched = await digest()
  await writeFile(path, 'GGUF1')
  await utimes(path, new Date(0), new Date(2_000))
  const grown = await digest()

  expect(same).toBe(first)
  expect(new Set([first, touched, grown]).size).toBe(3)
})

test('other files, folders, projectors and broken links are not listed', async () => {
  await write('README.md', 'model.gguf.part', 'mmproj-llava.gguf', 'real.gguf')
  await mkdir(join(folder, 'folder.gguf'))
  await symlink(join(folder, 'gone'), join(folder, 'broken.gguf'))
  const store = new ModelStore([{ path: folder }])

  const listed = await names(store)

  expect(listed).toEqual(['real:latest'])
})

test('a symbolic link to a model is listed', async () => {
  await write('blob')
  await symlink(join(folder, 'blob'), join(folder, 'linked.gguf'))
  const store = new ModelStore([{ path: folder }])

  const listed = await names(store)

  expect(listed).toEqual(['linked:latest'])
})

test('a split model is listed once, by its first file', async () => {
  await write('big-00001-of-00002.gguf', 'big-00002-of-00002.gguf', 'gpt-20000.gguf')
  const store = new ModelStore([{ path: folder }])

  const model = await store.get('big')

  expect(await names(store)).toEqual(['big:latest', 'gpt-20000:latest'])
  expect(model.path).toBe(join(folder, 'big-00001-of-00002.gguf'))
})

test('a single file can be a source', async () => {
  await write('one.gguf', 'two.gguf', 'sha256-abc')
  const store = new ModelStore([{ path: join(folder, 'one.gguf') }, { path: join(folder, 'sha256-abc') }])

  const listed = await names(store)

  expect(listed).toEqual(['one:latest', 'sha256-abc:latest'])
})

test('the earlier source wins for equal names', async () => {
  await mkdir(join(folder, 'a'))
  await mkdir(join(folder, 'b'))
  await write('a/tiny.gguf', 'b/tiny.gguf', 'b/other.gguf')
  const store = new ModelStore([{ path: join(folder, 'b') }, { path: join(folder, 'a') }])

  const model = await store.get('tiny')

  expect(await names(store)).toEqual(['other:latest', 'tiny:latest'])
  expect(model.path).toBe(join(folder, 'b', 'tiny.gguf'))
})

test('a folder named like a model hides no model of a later source', async () => {
  await mkdir(join(folder, 'a'))
  await mkdir(join(folder, 'a', 'tiny.gguf'))
  await write('Tiny.gguf')
  const store = new ModelStore([{ path: join(folder, 'a') }, { path: folder }])

  const model = await store.get('tiny')

  expect(await names(store)).toEqual(['Tiny:latest'])
  expect(model.path).toBe(join(folder, 'Tiny.gguf'))
})

test('details() accepts a model without a second lookup', async () => {
  const store = new ModelStore([{ path: modelPath, builtInName: 'tiny' }])
  const model = await store.get('tiny')

  expect(await store.details(model)).toBe(await store.details('tiny'))
})

test('the built-in model has its configured name', async () => {
  await write('tiny-chat.gguf')
  const store = new ModelStore([{ path: join(folder, 'tiny-chat.gguf'), builtInName: 'tiny' }])

  const model = await store.get('tiny')

  expect(model).toMatchObject({ name: 'tiny:latest', isBuiltIn: true })
})

test('a model of the same name replaces the built-in one', async () => {
  await write('tiny.gguf', 'tiny-chat.bin')
  const store = new ModelStore([
    { path: folder },
    { path: join(folder, 'tiny-chat.bin'), builtInName: 'tiny' },
  ])

  const listed = await store.list()

  expect(listed).toMatchObject([{ name: 'tiny:latest', isBuiltIn: false }])
})

test.each([
  ...['tiny', 'tiny:latest', 'TiNy', 'tiny:Latest', ' tiny ', 'tiny:local', 'library/tiny'],
  ...['registry.ollama.ai/library/tiny:latest', 'https://Registry.Ollama.ai/library/tiny'],
])('%j finds tiny:latest', async (name) => {
  await write('tiny.gguf')
  const store = new ModelStore([{ path: folder }])

  const model = await store.get(name)

  expect(model.name).toBe('tiny:latest')
})

test('names that differ in case are found by their exact spelling', async () => {
  // A case-insensitive disk cannot have both files in one folder.
  await mkdir(join(folder, 'a'))
  await mkdir(join(folder, 'b'))
  await write('a/Tiny.gguf', 'b/tiny.gguf')
  const store = new ModelStore([{ path: join(folder, 'a') }, { path: join(folder, 'b') }])

  const found = await Promise.all(['tiny', 'Tiny', 'TINY'].map((name) => store.get(name)))

  expect(found.map(({ name }) => name)).toEqual(['tiny:latest', 'Tiny:latest', 'Tiny:latest'])
})

test.each(['my model', 'my model:latest'])(
  'a file with an invalid name is found by its exact name, %j',
  async (name) => {
    await write('my model.gguf')
    const store = new ModelStore([{ path: folder }])

    const model = await store.get(name)

    expect(model.name).toBe('my model:latest')
  },
)

test('a file with an invalid name is found by its exact name only', async () => {
  await write('my model.gguf')
  const store = new ModelStore([{ path: folder }])

  await expect(store.get('My Model')).rejects.toMatchObject({ code: 'not_found' })
})

test.each(['tiny:8b', 'tiny:cloud', 'user/tiny', 'hf.co/library/tiny', 'tin', 'tiny.gguf', ''])(
  '%j is not found',
  async (name) => {
    await write('tiny.gguf')
    const store = new ModelStore([{ path: folder }])

    const found = store.get(name)

    await expect(found).rejects.toMatchObject({ code: 'not_found', details: { param: 'model' } })
  },
)

test('a name with a path finds no file outside of the folder', async () => {
  await mkdir(join(folder, 'models'))
  await write('secret.gguf', 'models/tiny.gguf')
  const store = new ModelStore([{ path: join(folder, 'models') }])

  const found = store.get('../secret')

  await expect(found).rejects.toMatchObject({ code: 'not_found' })
})

test('a missing folder is empty', async () => {
  const store = new ModelStore([{ path: join(folder, 'gone') }, { path: folder }])

  const listed = await store.list()

  expect(listed).toEqual([])
})

test('added and removed files are noticed without a restart', async () => {
  const store = new ModelStore([{ path: folder }])
  const before = await names(store)
  await write('new.gguf')
  const between = await names(store)
  await rm(join(folder, 'new.gguf'))

  const after = await names(store)

  expect([before, between, after]).toEqual([[], ['new:latest'], []])
})

test('a file without .gguf in its name is rejected as a source, a folder is accepted', async () => {
  await expect(
    expectSource({ path: new URL('../../package.json', import.meta.url).pathname }),
  ).rejects.toThrow('is neither')
  await expect(expectSource({ path: new URL('.', import.meta.url).pathname })).resolves.toBeUndefined()
})

test('details are cached until the file changes, and concurrent reads are shared', async () => {
  const path = join(folder, 'some.gguf')
  await copyFile(modelPath, path)
  const store = new ModelStore([{ path: folder }])

  const [first, second] = await Promise.all([store.details('some'), store.details('SOME')])
  const third = await store.details('some')
  await utimes(path, new Date(0), new Date(0))
  const changed = await store.details('some')

  expect(second).toBe(first)
  expect(third).toBe(first)
  expect(changed).not.toBe(first)
  expect(changed).toEqual(first)
})

test('details with arrays are read on request', async () => {
  const store = new ModelStore([{ path: modelPath, builtInName: 'tiny' }])

  const small = await store.details('tiny')
  const whole = await store.details('tiny', { arrays: true })

  expect(small.metadata['tokenizer.ggml.tokens']).toBeNull()
  expect(whole.metadata['tokenizer.ggml.tokens']).toHaveLength(1536)
  await expect(store.details('tiny')).resolves.toBe(small)
})

test('a failed read is not cached', async () => {
  const path = join(folder, 'some.gguf')
  await writeFile(path, 'PK'.repeat(100))
  await utimes(path, new Date(0), new Date(0))
  const store = new ModelStore([{ path: folder }])
  const first = store.details('some')
  await expect(first).rejects.toMatchObject({
    code: 'upstream',
    message: 'The file of the model "some:latest" cannot be used: it is not a GGUF file.',
  })
  await writeFile(path, gguf([], []).toString('latin1').padEnd(200, '\0'))
  await utimes(path, new Date(0), new Date(0))

  const second = await store.details('some')

  expect(second.architecture).toBe('unknown')
})

test('details of a missing model are not found', async () => {
  const store = new ModelStore([{ path: folder }])

  await expect(store.details('none')).rejects.toMatchObject({ code: 'not_found' })
})

test('a file with adapters has its own name, and a digest that includes them', async () => {
  await write('base.gguf', 'a.gguf')
  const [path, adapter] = [join(folder, 'base.gguf'), join(folder, 'a.gguf')]
  const found = (scale: number) =>
    new ModelStore([{ name: 'mine', path, adapters: [{ path: adapter, scale }] }]).get('mine')
  const first = await found(1)
  const otherScale = await found(0.5)
  await writeFile(adapter, 'GGUF and more')
  const otherFile = await found(1)

  expect(first).toMatchObject({
    name: 'mine:latest',
    path,
    adapters: [{ path: adapter, scale: 1, sizeBytes: 4 }],
  })
  expect(new Set([first, otherScale, otherFile].map(({ digest }) => digest)).size).toBe(3)
})

test.each<[ModelSource, string]>([
  [{ name: 'no name', path: 'base.gguf' }, 'model names'],
  [{ name: 'mine', path: '' }, 'is a folder'],
  [
    { name: 'mine', path: 'base.gguf', adapters: [{ path: 'gone.gguf', scale: 1 }] },
    'gone.gguf does not exist',
  ],
])('%j is a configuration error', async (source, message) => {
  await write('base.gguf')
  const inFolder = <T extends { readonly path: string }>(one: T): T => ({
    ...one,
    path: join(folder, one.path),
  })

  await expect(
    expectSource({ ...inFolder(source), adapters: (source.adapters ?? []).map(inFolder) }),
  ).rejects.toThrow(message)
})
