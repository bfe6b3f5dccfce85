import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Model } from './model.ts'
import type { CreateModelRequest } from './modelfile/create-request.ts'
import { digestOf } from './ollama-store/digest.ts'
import { ModelStore } from './store.ts'

let folder: string
let other: string
let store: ModelStore
const weights = readFile(modelPath)
const { signal } = new AbortController()

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'store-'))
  other = await mkdtemp(join(tmpdir(), 'store-'))
  store = new ModelStore([{ path: folder }, { path: other }, { path: modelPath, builtInName: 'tiny' }])
})

afterEach(async () => {
  await rm(folder, { recursive: true })
  await rm(other, { recursive: true })
})

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Creates a model. Returns the statuses of all progress events. */
async function create(spec: CreateModelRequest, at = store): Promise<readonly string[]> {
  const told: string[] = []
  for await (const { status } of at.create(spec)) told.push(status)
  return told
}

async function createFromFile(
  name: string,
  more: Partial<CreateModelRequest> = {},
  at = store,
): Promise<void> {
  const digest = digestOf(await weights)
  await at.blobs.write(digest, once(await weights), signal)
  await create({ name, files: { 'model.gguf': digest }, ...more }, at)
}

const names = async () => (await store.list()).map(({ name }) => name)
const blobs = async () => (await readdir(join(folder, 'blobs')).catch(() => [])).sort()

test('a created model is listed with its settings', async () => {
  await createFromFile('mine', {
    system: 'Be brief.',
    parameters: { temperature: 0 },
    messages: [{ role: 'user', content: 'Hi' }],
    license: ['MIT'],
  })

  const model = await store.get('Mine')
  const details = await store.details(model)

  expect(model).toMatchObject({
    name: 'mine:latest',
    isBuiltIn: false,
    digest: digestOf(await readFile(join(folder, 'manifests/registry.ollama.ai/library/mine/latest'))).slice(
      7,
    ),
    defaults: {
      system: 'Be brief.',
      parameters: { temperature: 0 },
      messages: [{ role: 'user', content: 'Hi' }],
      license: ['MIT'],
    },
    config: { model_format: 'gguf', model_family: 'llama' },
  })
  expect(digestOf(await readFile(model.path))).toBe(digestOf(await weights))
  expect(details).toMatchObject({ architecture: 'llama', contextSize: 8192 })
})

test('a model created from the built-in one has it as parent', async () => {
  const told = await create({ name: 'mine', from: 'tiny', system: 'Be brief.' })

  const model = await store.get('mine')
  expect(told.at(-1)).toBe('success')
  expect(model).toMatchObject({ parent: 'tiny:latest', defaults: { system: 'Be brief.' } })
  expect(digestOf(await readFile(model.path))).toBe(digestOf(await weights))
})

test('a copy has the same bytes and a new date', async () => {
  await createFromFile('mine')
  const original = await store.get('mine')

  await store.copy('mine', 'user/other:v1')

  const copy = await store.get('user/other:v1')
  expect(copy).toMatchObject({ digest: original.digest, path: original.path, sizeBytes: original.sizeBytes })
  expect(copy.modifiedAt.getTime()).toBeGreaterThanOrEqual(original.modifiedAt.getTime())
})

test('the built-in model is copied with its file', async () => {
  await store.copy('tiny', 'mine')

  const { path, isBuiltIn } = await store.get('mine')

  expect(isBuiltIn).toBe(false)
  expect(digestOf(await readFile(path))).toBe(digestOf(await weights))
})

test('a model without its weights is listed, but details and check reject', async () => {
  await createFromFile('mine')
  await rm((await store.get('mine')).path)

  const model = await store.get('mine')

  expect(await names()).toContain('mine:latest')
  expect(model).toMatchObject({ path: '', isIncomplete: true })
  for (const reading of [store.details(model), store.details(model, { arrays: true }), store.check(model)])
    await expect(reading).rejects.toMatchObject({
      code: 'not_found',
      message: 'the weights of the model "mine:latest" are not found, try pulling it again',
    })
  await expect(store.check({ ...model, isIncomplete: undefined } as unknown as Model)).rejects.toMatchObject({
    code: 'invalid_request',
    message: '"mine:latest" has no weights',
  })
})

test('the built-in model cannot be pushed, but its copy can', async () => {
  const push = async (name: string): Promise<void> => {
    for await (const _step of store.push(name));
  }
  await store.copy('tiny', 'mine')

  await expect(push('tiny')).rejects.toMatchObject({
    code: 'permission',
    message: 'The model "tiny:latest" is built in and cannot be pushed: copy it to another name first.',
  })
  // The error about the registry shows that the model itself could be pushed.
  await expect(push('mine')).rejects.toThrow('is not allowed on this server')
})

test('copy and create use the model that the name resolves to, not a hidden manifest', async () => {
  await createFromFile('tiny', { system: 'Be brief.' })
  const files = new ModelStore([{ path: modelPath }, { path: folder }])
  const name = (await files.list())[0]?.name ?? ''
  await createFromFile(name, { system: 'Be brief.' })

  await files.copy(name, 'copied')
  await create({ name: 'made', from: name }, files)

  expect((await files.get(name)).path).toBe(modelPath)
  for (const one of ['copied', 'made']) expect((await files.get(one)).defaults?.system).toBeUndefined()
})

test('a copy over an existing name removes its unreferenced blobs', async () => {
  await createFromFile('mine')
  await createFromFile('old', { system: 'Only here.' })
  const before = await blobs()

  await store.copy('mine', 'old')

  const left = await blobs()
  expect(before.filter((blob) => !left.includes(blob))).toEqual([`sha256-${digestOf('Only here.').slice(7)}`])
})

test('deleting a model removes its unreferenced blobs', async () => {
  await createFromFile('mine', { system: 'Only here.' })
  await create({ name: 'other', from: 'mine', system: 'Another.' })

  await store.delete('MINE')
  const left = await blobs()
  await store.delete('other')

  expect(left).toHaveLength(3)
  expect(left).not.toContain(`sha256-${digestOf('Only here.').slice(7)}`)
  expect(await blobs()).toEqual([])
  expect(await readdir(join(folder, 'manifests'))).toEqual([])
})

test('a recent upload survives deleting another model', async () => {
  await createFromFile('mine')
  const digest = digestOf(await weights)
  await waitForNextSecond()
  await store.blobs.write(digest, once(await weights), signal)

  await store.delete('mine')

  expect(await store.blobs.find(digest)).toBeDefined()
})

/** The store treats dates within a second as equal, since file dates are coarse. */
async function waitForNextSecond(): Promise<void> {
  const { path = '' } = (await store.blobs.find(digestOf(await weights))) ?? {}
  const { mtimeMs } = await stat(path)
  await expect.poll(() => Date.now() - mtimeMs, { timeout: 5_000 }).toBeGreaterThan(1_500)
}

test.each([
  ['the built-in model', 'tiny', 'is built in'],
  ['a standalone file', 'plain', 'standalone file'],
  ['a model in a read-only folder', 'theirs', 'read-only folder'],
])('%s cannot be deleted, and the error contains the reason', async (_what, name, reason) => {
  await writeFile(join(folder, 'plain.gguf'), 'GGUF')
  await createFromFile('theirs', {}, new ModelStore([{ path: other }]))
  const before = await names()

  await expect(store.delete(name)).rejects.toMatchObject({
    code: 'permission',
    message: expect.stringContaining(reason),
  })

  expect(await names()).toEqual(before)
})

test.each(['{"config":5}', 'PK'])('a damaged manifest (%s) can be deleted', async (bytes) => {
  await createFromFile('mine')
  const manifests = join(folder, 'manifests/registry.ollama.ai/library')
  await mkdir(join(manifests, 'broken'))
  await writeFile(join(manifests, 'broken/latest'), bytes)

  expect(await names()).toEqual(['mine:latest', 'tiny:latest'])
  await store.delete('broken')

  expect(await readdir(manifests)).toEqual(['mine'])
  await expect(store.delete('broken')).rejects.toMatchObject({ code: 'not_found' })
  // While the damaged manifest existed, nothing could be pruned.
  await store.delete('mine')
  expect(await blobs()).toEqual([])
})

test('a damaged manifest is deleted before the model that it hides', async () => {
  const manifests = join(folder, 'manifests/registry.ollama.ai/library')
  await mkdir(join(manifests, 'tiny'), { recursive: true })
  await writeFile(join(manifests, 'tiny/latest'), 'PK')

  await store.delete('tiny')

  expect(await readdir(manifests).catch(() => [])).toEqual([])
  await expect(store.delete('tiny')).rejects.toMatchObject({ code: 'permission' })
})

test('an abort while copying leaves no copy', async () => {
  const leaving = new AbortController()
  const copied = store.copy('tiny', 'mine', { signal: leaving.signal })
  leaving.abort(new Error('left'))

  await expect(copied).rejects.toThrow('left')

  expect(await names()).toEqual(['tiny:latest'])
  expect(await blobs()).toEqual([])
})

test('a model with adapters from the options cannot be a base', async () => {
  const adapters = [{ path: modelPath, scale: 0.5 }]
  const adapted = new ModelStore([{ path: folder }, { path: modelPath, name: 'pirate', adapters }])

  await expect(create({ name: 'mine', from: 'pirate' }, adapted)).rejects.toMatchObject({
    code: 'permission',
    message: expect.stringContaining('adapters'),
  })
})

test('the first folder wins for equal names, and a manifest wins over a file', async () => {
  await createFromFile('mine', { system: 'first' })
  await createFromFile('mine', { system: 'second' }, new ModelStore([{ path: other }]))
  await writeFile(join(folder, 'mine.gguf'), 'GGUF')
  const turned = new ModelStore([{ path: other }, { path: folder }])

  expect((await store.get('mine')).defaults?.system).toBe('first')
  expect((await turned.get('mine')).defaults?.system).toBe('second')
  expect((await store.list()).filter(({ name }) => name === 'mine:latest')).toMatchObject([
    { defaults: { system: 'first' } },
  ])
})

test.each([(path: string) => `${path}/`, (path: string) => relative('.', path)])(
  'a folder is recognised in any spelling of its path',
  async (written) => {
    await createFromFile('mine')
    const same = new ModelStore([{ path: written(folder) }])

    expect((await same.list()).map(({ name }) => name)).toEqual(['mine:latest'])
    expect((await same.get('mine')).name).toBe('mine:latest')
  },
)

test('a tag named local is found', async () => {
  await createFromFile('mine:local', { system: 'local' })
  await createFromFile('other', { system: 'other' })

  expect((await store.get('mine:local')).defaults?.system).toBe('local')
  expect((await store.get('other:local')).defaults?.system).toBe('other')
  await expect(store.get('mine')).rejects.toMatchObject({ code: 'not_found' })
})

test('a missing blob fails only calls that need it, not the list', async () => {
  await createFromFile('mine', { system: 'Be brief.' })
  await rm(join(folder, 'blobs', `sha256-${digestOf('Be brief.').slice(7)}`))
  const fresh = new ModelStore([{ path: folder }])

  expect((await fresh.list()).map(({ name }) => name)).toEqual(['mine:latest'])
  await expect(fresh.get('mine')).rejects.toMatchObject({ code: 'upstream' })
  await expect(fresh.delete('mine')).resolves.toBeUndefined()
})

test('repeated reads of a model are cached', async () => {
  await createFromFile('mine', { system: 'Be brief.' })
  const first = await store.get('mine')
  // A second read would fail: the blobs are removed.
  await rm(join(folder, 'blobs', `sha256-${digestOf('Be brief.').slice(7)}`))

  const second = await store.get('mine')

  expect(second.defaults).toBe(first.defaults)
})

test.each([
  ...[
    '../../secret',
    '..',
    'a/../../b',
    '..%2f..%2fsecret',
    '/etc/passwd',
    'a/b/c/../../../x',
    'x\0',
    'C:\\x',
  ],
  ...['../blobs/x:latest', 'registry.ollama.ai/../..:x', './tiny', 'a\\..\\b', 'x:../../y', '....//x:y'],
])('%j is rejected by every method', async (name) => {
  await createFromFile('mine')
  await writeFile(join(folder, '..', 'secret.gguf'), 'GGUF')
  const before = await everything()
  const refused = { code: expect.stringMatching(/^(invalid_request|not_found|permission)$/) }

  for (const attempt of [
    () => store.get(name),
    () => store.details(name),
    () => store.delete(name),
    () => store.copy(name, 'new'),
    () => store.copy('mine', name),
    () => create({ name, from: 'mine' }),
    () => create({ name: 'new', from: name }),
    () => drain(store.pull(name)),
    () => drain(store.push(name)),
  ])
    await expect(attempt()).rejects.toMatchObject(refused)

  expect(await everything()).toEqual(before)
  await rm(join(folder, '..', 'secret.gguf'))
})

test.each([
  ...['sha256:../../../etc/passwd', 'sha256-../x', '../../x', 'sha256:', `sha256:${'a'.repeat(63)}`],
  ...[
    `sha256:${'a'.repeat(65)}`,
    `sha256:${'g'.repeat(64)}`,
    `md5:${'a'.repeat(64)}`,
    `sha256:${'a'.repeat(64)}/x`,
  ],
])('%j is rejected as a digest by every method', async (digest) => {
  const before = await everything()

  for (const spec of [{ files: { 'x.gguf': digest } }, { from: 'tiny', adapters: { 'x.gguf': digest } }])
    await expect(create({ name: 'new', ...spec })).rejects.toMatchObject({ code: 'invalid_request' })

  expect((await everything()).filter((path) => path.includes('manifests/'))).toEqual([])
  expect(before).toEqual([])
})

const drain = async (steps: AsyncIterable<unknown>): Promise<void> => {
  for await (const _step of steps);
}

const everything = async (): Promise<readonly string[]> =>
  (await readdir(folder, { recursive: true })).filter((path) => !path.endsWith('.lock')).sort()

test('a read-only folder is readable, and writes fail with a reason', async () => {
  await createFromFile('theirs', {}, new ModelStore([{ path: other }]))
  // Even root cannot write to a folder if a file has its name.
  await mkdir(join(folder, 'sub'))
  for (const name of ['blobs', 'manifests']) await writeFile(join(folder, 'sub', name), '')
  const blocked = new ModelStore([{ path: join(folder, 'sub') }, { path: other }])

  await expect(blocked.copy('theirs', 'mine')).rejects.toMatchObject({ code: 'permission' })
  await expect(blocked.blobs.add(Buffer.from('new'))).rejects.toMatchObject({ code: 'permission' })
  expect((await blocked.get('theirs')).name).toBe('theirs:latest')
})

test('a name too long for the disk is a client error', async () => {
  await createFromFile('mine')

  await expect(store.copy('mine', `${'h'.repeat(300)}/library/mine`)).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

test('a blob beyond the byte limit is rejected and removed', async () => {
  const small = new ModelStore([{ path: folder }, { path: modelPath, builtInName: 'tiny' }], {
    maxBytes: 1_000_000,
  })

  await expect(small.copy('tiny', 'mine')).rejects.toMatchObject({
    code: 'too_large',
    message: expect.stringContaining('1000000 bytes'),
  })

  expect(await names()).toEqual(['tiny:latest'])
  expect(await blobs()).toEqual([])
})

test('prune() removes blobs unreferenced for an hour', async () => {
  await createFromFile('mine')
  const { digest } = await store.blobs.add(Buffer.from('left over'))
  const { path = '' } = (await store.blobs.find(digest)) ?? {}
  await store.prune()
  const early = await blobs()
  await utimes(path, new Date(0), new Date(0))

  await store.prune()

  expect(early).toHaveLength(3)
  expect(await blobs()).toHaveLength(2)
  expect((await store.get('mine')).path).not.toBe('')
})

test('the store adds no listeners to the process', async () => {
  const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name as string)])
  const before = listeners()

  await createFromFile('mine')
  await store.delete('mine')

  expect(listeners()).toEqual(before)
})
