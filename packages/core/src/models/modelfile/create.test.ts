import { createReadStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { adapterEntries, adapterFile } from '../../../../../test/support/adapter.ts'
import { forgeries } from '../../../../../test/support/forgeries.ts'
import { countEntry, gguf, textEntry } from '../../../../../test/support/gguf.ts'
import { encoderModel, narrowModel, noiseModel } from '../../../../../test/support/models.ts'
import { LlmError } from '../../errors.ts'
import { checkModel } from '../gguf/check.ts'
import { BlobStore } from '../ollama-store/blobs.ts'
import { type Digest, digestOf } from '../ollama-store/digest.ts'
import { layerKindOf, mediaTypeOf } from '../ollama-store/manifest.ts'
import { ManifestStore } from '../ollama-store/manifests.ts'
import { type ModelName, parseModelName } from '../ollama-store/name.ts'
import type { ManifestEntry } from '../ollama-store/store-contracts.ts'
import type { Progress } from '../registry/progress.ts'
import { ModelStore } from '../store.ts'
import { createModel } from './create.ts'
import type { CreateDependencies, CreateModelRequest } from './create-request.ts'
import { parseModelfile } from './modelfile.ts'
import { renderModelfile } from './show.ts'

let root: string
let blobs: BlobStore
let manifests: ManifestStore
let pulled: string[]
const signal = AbortSignal.timeout(60_000)

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'create-'))
  blobs = new BlobStore([root])
  manifests = new ManifestStore([root], blobs)
  pulled = []
})

afterEach(() => rm(root, { recursive: true }))

const parts = (more: Partial<CreateDependencies> = {}): CreateDependencies => ({
  blobs,
  manifests,
  find: async (name) => {
    const entry = await manifests.find(parseModelName(name) as ModelName)
    return entry && { entry }
  },
  async *pull(name) {
    pulled.push(name)
    yield { status: 'pulling manifest' }
    throw new LlmError('upstream', 'pull model manifest: file does not exist')
  },
  prune: true,
  ...more,
})

async function made(spec: CreateModelRequest, more?: Partial<CreateDependencies>): Promise<string[]> {
  const statuses: string[] = []
  for await (const { status } of createModel(spec, parts(more), { signal })) statuses.push(status)
  return statuses
}

/** Expects `createModel` to fail. Returns the statuses before the failure, and the error. */
async function refused(
  spec: CreateModelRequest,
  more?: Partial<CreateDependencies>,
): Promise<[string[], LlmError]> {
  const statuses: string[] = []
  try {
    for await (const { status } of createModel(spec, parts(more), { signal })) statuses.push(status)
  } catch (error) {
    return [statuses, error as LlmError]
  }
  throw new Error(`The model was created: ${statuses}`)
}

async function upload(file: string | Buffer): Promise<Digest> {
  const digest = digestOf(typeof file === 'string' ? await readFile(file) : file)
  await blobs.write(digest, typeof file === 'string' ? createReadStream(file) : inOne(file), signal)
  return digest
}

async function* inOne(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

async function entryOf(text: string): Promise<ManifestEntry> {
  const name = parseModelName(text)
  const entry = name && (await manifests.find(name))
  if (!entry) throw new Error(`There is no ${text}.`)
  return entry
}

async function layersOf(name: string): Promise<{ kind: string | undefined; from?: string; text: string }[]> {
  const { manifest } = await entryOf(name)
  return Promise.all(
    manifest.layers.map(async ({ mediaType, digest, size, from }) => ({
      kind: layerKindOf(mediaType),
      ...(from !== undefined && { from }),
      text: size < 10_000 ? String(await blobs.read(digest, 10_000)) : `${size} bytes`,
    })),
  )
}

const configOf = async (name: string): Promise<unknown> =>
  JSON.parse(String(await blobs.read((await entryOf(name)).manifest.config.digest, 10_000)))

const tiny = async (): Promise<Digest> => {
  const digest = await upload(narrowModel)
  await made({ name: 'tiny', files: { 'tiny.gguf': digest } })
  return digest
}

describe('from files', () => {
  test('an uploaded file becomes the model unchanged', async () => {
    const digest = await upload(narrowModel)

    const statuses = await made({ name: 'tiny', files: { 'tiny.gguf': digest } })

    expect(statuses).toEqual([
      'parsing GGUF',
      'verifying conversion',
      `using existing layer ${digest}`,
      'writing manifest',
      'success',
    ])
    expect(String((await entryOf('tiny')).bytes)).toBe(
      '{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:a5e47811e0b38262c931b2ca461ea8f5e8b2ac1441ef6dd6f328b0ed174ef8c6","size":150},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:ce3791086e8bc7656202a10dbda922e245479e4d7482e299ea6df32e21ecd1ec","size":3926560}]}\n',
    )
  })

  test('a GGUF file needs no .gguf in its name', async () => {
    const digest = await upload(narrowModel)

    expect(await made({ name: 'tiny', files: { weights: digest } })).toContain('success')
  })

  test('an adapter is stored with its model', async () => {
    const [model, adapter] = [await upload(narrowModel), await upload(adapterFile())]

    await made({ name: 'a', files: { 'lora.gguf': adapter, 'tiny.gguf': model } })
    await made({ name: 'b', files: { 'tiny.gguf': model }, adapters: { 'lora.gguf': adapter } })

    const expected = [
      { kind: 'model', text: '3926560 bytes' },
      { kind: 'adapter', from: 'lora.gguf' },
    ]
    expect(await layersOf('a')).toMatchObject(expected)
    expect(await layersOf('b')).toMatchObject(expected)
  })

  test('a projector is a separate layer, and its architecture is listed in the families', async () => {
    const [model, projector] = [await upload(narrowModel), await upload(projectorFile)]

    await made({ name: 'seeing', files: { 'mmproj.gguf': projector, 'tiny.gguf': model } })

    expect(await layersOf('seeing')).toMatchObject([{ kind: 'model' }, { kind: 'projector' }])
    expect(await configOf('seeing')).toMatchObject({
      model_family: 'llama',
      model_families: ['llama', 'clip'],
    })
  })

  const bytes = Buffer.from('these are no weights')
  const cut = async () => upload((await readFile(narrowModel)).subarray(0, 1_000_000))
  const ranksTwice = () =>
    upload(adapterFile({ entries: { 'general.architecture': textEntry('general.architecture', 'qwen3') } }))

  test.each<[string, () => Promise<CreateModelRequest>, number, string]>([
    [
      'an invalid digest',
      async () => ({ name: 'x', files: { 'a.gguf': 'sha256:xyz' } }),
      1,
      'invalid digest format',
    ],
    [
      'a missing blob',
      async () => ({ name: 'x', files: { 'a.gguf': `sha256:${'0'.repeat(64)}` } }),
      1,
      `open blobs/sha256-${'0'.repeat(64)}: no such file or directory`,
    ],
    [
      'bytes that are not GGUF',
      async () => ({ name: 'x', files: { 'a.gguf': await upload(bytes) } }),
      1,
      'supplied file was not in GGUF format',
    ],
    [
      'bytes of an unknown type',
      async () => ({ name: 'x', files: { 'a.bin': await upload(bytes) } }),
      0,
      'unknown type',
    ],
    [
      'a file that was cut off',
      async () => ({ name: 'x', files: { 'a.gguf': await cut() } }),
      1,
      'The file of the model "a.gguf" cannot be used: it was cut off, and weights are missing.',
    ],
    [
      'one file of a split model',
      async () => ({ name: 'x', files: { 'a.gguf': await upload(splitFile) } }),
      1,
      'split GGUF "a.gguf" cannot be stored',
    ],
    [
      'an adapter for another architecture',
      async () => ({
        name: 'x',
        files: { 'a.gguf': await upload(narrowModel) },
        adapters: { 'b.gguf': await ranksTwice() },
      }),
      3,
      'it is for qwen3 models, and this is a llama',
    ],
    [
      'a model in place of an adapter',
      async () => ({
        name: 'x',
        files: { 'a.gguf': await upload(narrowModel) },
        adapters: { 'b.gguf': await upload(encoderModel) },
      }),
      2,
      'the file "b.gguf" is no adapter',
    ],
  ])('%s is rejected', async (_, spec, steps, problem) => {
    const [statuses, error] = await refused(await spec())

    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining(problem) })
    expect(statuses).toHaveLength(steps)
    expect(await manifests.list()).toEqual([])
  })
})

describe('from another model', () => {
  test('the new model inherits layers, and its own settings replace inherited ones', async () => {
    await tiny()

    await made({
      name: 'first',
      from: 'TINY',
      template: '{{ .Prompt }}!',
      system: 'You are Bob.',
      parameters: { temperature: 0, stop: ['<x>'] },
      license: ['L1'],
      messages: [{ role: 'user', content: '<b>' }],
    })
    await made({
      name: 'second',
      from: 'first',
      system: 'You are Ann.',
      parameters: { top_p: 0.5 },
      license: ['L1', 'L2', 'L2'],
      messages: [],
    })

    expect(await layersOf('first')).toEqual([
      { kind: 'model', from: 'tiny:latest', text: '3926560 bytes' },
      { kind: 'template', text: '{{ .Prompt }}!' },
      { kind: 'system', text: 'You are Bob.' },
      { kind: 'license', text: 'L1' },
      { kind: 'params', text: '{"stop":["\\u003cx\\u003e"],"temperature":0}\n' },
      { kind: 'messages', text: '[{"role":"user","content":"\\u003cb\\u003e"}]\n' },
    ])
    expect(await layersOf('second')).toEqual([
      { kind: 'model', from: 'first:latest', text: '3926560 bytes' },
      { kind: 'template', from: 'first:latest', text: '{{ .Prompt }}!' },
      { kind: 'license', from: 'first:latest', text: 'L1' },
      { kind: 'messages', from: 'first:latest', text: '[{"role":"user","content":"\\u003cb\\u003e"}]\n' },
      { kind: 'system', text: 'You are Ann.' },
      { kind: 'license', text: 'L2' },
      { kind: 'params', text: '{"stop":["\\u003cx\\u003e"],"temperature":0,"top_p":0.5}\n' },
    ])
  })

  test('the placeholder template is not stored', async () => {
    await tiny()

    await made({ name: 'a', from: 'tiny', template: '{{ .Prompt }}' })
    await made({ name: 'b', from: 'tiny', template: '{{ .System }}' })
    await made({ name: 'b', from: 'b', template: '{{ .Prompt }}' })

    expect(await layersOf('a')).toMatchObject([{ kind: 'model' }])
    expect(await layersOf('b')).toMatchObject([{ kind: 'model' }])
  })

  test('the placeholder template is ignored even as a layer of another server', async () => {
    const { manifest } = await tiny().then(() => entryOf('tiny'))
    const { digest, sizeBytes: size } = await blobs.add(Buffer.from('{{ .Prompt }}'))
    const layers = [...manifest.layers, { mediaType: mediaTypeOf('template'), digest, size }]
    const name = parseModelName('theirs') as ModelName
    await manifests.write(name, Buffer.from(JSON.stringify({ ...manifest, layers })))

    const { defaults } = await new ModelStore([{ path: root }]).get('theirs')

    expect(defaults).toEqual({ parameters: {}, messages: [], license: [] })
  })

  test('an adapter replaces the inherited one', async () => {
    await tiny()
    const [one, two] = [await upload(adapterFile()), await upload(adapterFile({ weight: 0.1 }))]

    await made({ name: 'a', from: 'tiny', adapters: { 'one.gguf': one } })
    await made({ name: 'b', from: 'a', adapters: { 'two.gguf': two } })
    await made({ name: 'c', from: 'b' })

    expect(await layersOf('a')).toMatchObject([{ kind: 'model' }, { kind: 'adapter', from: 'one.gguf' }])
    expect(await layersOf('b')).toMatchObject([{ kind: 'model' }, { kind: 'adapter', from: 'two.gguf' }])
    expect(await layersOf('c')).toMatchObject([{ kind: 'model' }, { kind: 'adapter', from: 'b:latest' }])
  })

  test('renderer and parser are inherited, configuration overrides are not', async () => {
    await tiny()

    await made({
      name: 'a',
      from: 'tiny',
      renderer: 'r',
      parser: 'p',
      requires: '0.14.0',
      info: { base_name: 'n' },
    })
    await made({ name: 'b', from: 'a', parser: 'q', info: { context_length: 5, capabilities: ['vision'] } })

    expect(await configOf('b')).toEqual({
      model_format: 'gguf',
      model_family: 'llama',
      model_families: ['llama'],
      model_type: '3.64M',
      file_type: 'Q8_0',
      renderer: 'r',
      parser: 'q',
      requires: '0.14.0',
      capabilities: ['vision'],
      context_length: 5,
      architecture: 'amd64',
      os: 'linux',
    })
  })

  test('a missing base model is pulled first', async () => {
    const pull: CreateDependencies['pull'] = async function* (name): AsyncGenerator<Progress> {
      pulled.push(name)
      yield { status: 'pulling manifest' }
      await tiny()
      yield { status: 'success' }
    }

    const statuses = await made({ name: 'mine', from: 'tiny' }, { pull })

    expect(pulled).toEqual(['tiny:latest'])
    expect(statuses.slice(0, 2)).toEqual(['pulling manifest', 'success'])
    expect(statuses.at(-1)).toBe('success')
    expect(await layersOf('mine')).toMatchObject([{ kind: 'model', from: 'tiny:latest' }])
  })

  test('creating fails if the base model cannot be pulled', async () => {
    const [statuses, error] = await refused({ name: 'mine', from: 'nope' })

    expect(statuses).toEqual(['pulling manifest'])
    expect(error.code).toBe('upstream')
  })

  test('a standalone GGUF file is copied', async () => {
    const find = async (name: string) => ({ path: name === 'noise' ? noiseModel : split })
    const split = join(root, 'split.gguf')
    await writeFile(split, splitFile)

    await made({ name: 'mine', from: 'noise', system: 'x' }, { find })

    expect(await layersOf('mine')).toEqual([
      { kind: 'model', from: 'noise:latest', text: '5021568 bytes' },
      { kind: 'system', text: 'x' },
    ])
    expect(pulled).toEqual([])
    const [, error] = await refused({ name: 'mine', from: 'split' }, { find })
    expect(error.message).toContain('split GGUF "split:latest" cannot be stored')
  })
})

test('a model can be recreated from its own Modelfile', async () => {
  await tiny()
  await made({
    name: 'mine',
    from: 'tiny',
    template: '{{ .System }}\n"{{ .Prompt }}"\n',
    system: 'Two\nlines',
    parameters: { temperature: 0, num_ctx: 1_048_576, stop: ['\n\n', '"'] },
    license: ['L1', 'L2'],
    messages: [{ role: 'user', content: 'hi' }],
    renderer: 'r',
    parser: 'p',
    requires: '0.14.0',
    adapters: { 'lora.gguf': await upload(adapterFile()) },
  })
  const plain = { name: 'plain', from: 'tiny' }
  await made(plain)
  const store = new ModelStore([{ path: root }])

  for (const name of ['mine', 'plain']) {
    const before = await store.get(name)
    const { from, adapter, ignored, ...recipe } = parseModelfile(renderModelfile(before))
    await made({ ...recipe, name: 'again', from: from.join(), ...(adapter && { adapters: { adapter } }) })
    const after = await store.get('again')

    expect(after.defaults).toEqual(before.defaults)
    expect(after.config).toEqual(before.config)
    expect(after.path).toBe(before.path)
    expect(after.adapters).toEqual(before.adapters)
    expect(renderModelfile({ ...after, name: before.name })).toBe(renderModelfile(before))
  }
})

test('lines removed from a rendered Modelfile are not inherited by the new model', async () => {
  await tiny()
  await made({
    name: 'mine',
    from: 'tiny',
    template: '{{ .Prompt }}!',
    system: 'Be brief.',
    parameters: { temperature: 0, stop: ['x'] },
    license: ['MIT'],
    messages: [{ role: 'user', content: 'hi' }],
    renderer: 'r',
  })
  const store = new ModelStore([{ path: root }])
  const { from, parameters } = parseModelfile(renderModelfile(await store.get('mine')))

  await made({ name: 'mine', from: from.join(), parameters: { stop: parameters.stop } })

  const { defaults, config } = await store.get('mine')
  expect(defaults).toEqual({ parameters: { stop: ['x'] }, messages: [], license: [] })
  expect(config?.renderer).toBeUndefined()
})

test('a missing blob in from is a client error', async () => {
  const [statuses, error] = await refused({ name: 'x', from: `sha256-${'0'.repeat(64)}` })

  expect(statuses).toEqual([])
  expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('no such file') })
  expect(pulled).toEqual([])
})

test('an unusable file creates nothing and is a client error', async () => {
  // The test takes only a sample, since each file has megabytes.
  const some = forgeries.filter((_, index) => index % 6 === 0)
  let refusals = 0
  for (const { name, bytes } of some) {
    const path = join(root, 'forged.gguf')
    await writeFile(path, bytes())
    const problem = await checkModel({ name: 'a.gguf', path }).then(
      () => undefined,
      (error: LlmError) => error.message,
    )
    if (problem === undefined) continue
    refusals++

    const [, error] = await refused({ name: 'x', files: { 'a.gguf': await upload(path) } })

    expect(error, name).toMatchObject({ code: 'invalid_request' })
    expect([problem, 'supplied file was not in GGUF format'], name).toContain(error.message)
  }
  expect(refusals).toBeGreaterThan(10)
  expect(await manifests.list()).toEqual([])
})

describe('an existing name', () => {
  test('keeps its spelling, and blobs of the replaced model are removed', async () => {
    await tiny()
    await made({ name: 'mine', from: 'tiny', system: 'You are Bob.' })
    const { manifest } = await entryOf('mine')

    await made({ name: 'MINE', from: 'tiny', system: 'You are Ann.' })

    expect((await entryOf('mine')).name.model).toBe('mine')
    expect(await layersOf('mine')).toMatchObject([{ kind: 'model' }, { text: 'You are Ann.' }])
    expect(await blobs.find(manifest.layers[1]?.digest as Digest)).toBeUndefined()
    expect(await blobs.find(manifest.layers[0]?.digest as Digest)).toBeDefined()
  })

  test('keeps the blobs of the replaced model with prune: false', async () => {
    await tiny()
    await made({ name: 'mine', from: 'tiny', system: 'You are Bob.' })

    await made({ name: 'mine', from: 'tiny' }, { prune: false })

    expect(await blobs.find(digestOf('You are Bob.'))).toBeDefined()
  })
})

test.each<[Partial<CreateModelRequest>, string]>([
  [{ name: 'a b', from: 'tiny' }, 'invalid model name'],
  [{ from: 'a b' }, 'invalid model name'],
  [{}, "neither 'from' or 'files' was specified"],
  [{ adapters: { 'a.gguf': `sha256:${'0'.repeat(64)}` } }, "neither 'from' or 'files' was specified"],
  [{ files: {} }, 'no files provided to convert'],
  [{ files: { '/abs': 'sha256:0' } }, 'file path must be relative'],
  [{ files: { '../abs': 'sha256:0' } }, 'file path must be relative'],
  [{ files: { 'a.gguf': '' } }, 'invalid digest format'],
  [{ from: 'tiny', adapters: { 'a.gguf': 'x', 'b.gguf': 'x' } }, 'only one adapter is currently supported'],
  [{ from: 'tiny', template: '{{ .Foo' }, 'template error: template: :1: unclosed action'],
  [
    { from: 'tiny', template: '{{ nofunc .Foo }}' },
    'template error: template: :1: function "nofunc" not defined',
  ],
  [{ from: 'tiny', parameters: { temperature: 'hot' } }, '`temperature` is wrong'],
  [{ from: 'tiny', parameters: { temperature: -1 } }, '`temperature` is wrong'],
  [{ from: 'tiny', parameters: { num_ctx: 'abc' } }, '`num_ctx` is wrong'],
  [{ from: 'tiny', parameters: { bogus: 1, top_p: 1.5 } }, '`top_p` is wrong'],
  [{ from: 'tiny', parameters: { stop: ['a', 5] } }, '`stop` is wrong'],
  [{ from: 'tiny', parameters: { use_mmap: 'yes' } }, '`use_mmap` is wrong'],
  [{ from: 'tiny', quantize: 'q4_K_M' }, 'quantization is not offered here'],
  [{ from: 'tiny', info: { context_length: 'x' } }, 'info field "context_length" must be a number'],
  [
    { from: 'tiny', info: { embedding_length: -1 } },
    'info field "embedding_length" must be a non-negative integer',
  ],
  [{ from: 'tiny', info: { parameter_size: 1 } }, 'info field "parameter_size" must be a string'],
  [{ from: 'tiny', info: { capabilities: [1] } }, 'info field "capabilities" must be an array of strings'],
])('%j is rejected before the first step', async (spec, problem) => {
  const [statuses, error] = await refused({ name: 'x', ...spec })

  expect(statuses).toEqual([])
  expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining(problem) })
  expect(pulled).toEqual([])
})

test('any request creates a model or fails as invalid input', async () => {
  const digest = await tiny()
  const name = fc.constantFrom('x', 'tiny', 'a/b', '', '../x', 'x:y:z', 'hf.co/a/b')
  const uploads = fc.dictionary(
    fc.oneof(fc.constantFrom('a.gguf', '../a', '__proto__', 'a.bin'), fc.string()),
    fc.oneof(fc.constantFrom(digest, '', 'sha256:../../x'), fc.string()),
    { maxKeys: 2 },
  )
  const strange = fc.dictionary(
    fc.oneof(fc.constantFrom('capabilities', 'context_length', 'base_name', '__proto__'), fc.string()),
    fc.jsonValue(),
  )
  const spec = fc.record(
    {
      name,
      from: name,
      files: uploads,
      adapters: uploads,
      template: fc.constantFrom('{{ .Prompt }}', '{{', '{{ range .Messages }}{{ .Content }}{{ end }}'),
      system: fc.string(),
      license: fc.array(fc.string()),
      parameters: strange,
      messages: fc.array(fc.record({ role: fc.string(), content: fc.string() })),
      info: strange,
    },
    { requiredKeys: ['name'] },
  )

  await fc.assert(
    fc.asyncProperty(spec, async (one) => {
      const outcome = await made(one).then(
        (statuses) => statuses.at(-1),
        (error: LlmError) => error.code,
      )
      // `upstream` is the error for a missing base model, since the `pull` of this test always fails.
      expect(['success', 'invalid_request', 'upstream']).toContain(outcome)
    }),
    { numRuns: 300 },
  )
  for (const { manifest } of await manifests.list())
    for (const { digest } of manifest.layers) expect(await blobs.find(digest)).toBeDefined()
})

test('texts beyond the read limit are rejected', async () => {
  await tiny()
  const system = 'x'.repeat(5 * 1024 * 1024)
  await made({ name: 'long', from: 'tiny', system })

  const [, error] = await refused({ name: 'longer', from: 'long', license: [system] })

  expect(error.code).toBe('too_large')
})

test('an overlong template is rejected', async () => {
  const [, error] = await refused({ name: 'x', from: 'tiny', template: 'x'.repeat(64 * 1024 + 1) })

  expect(error).toMatchObject({
    code: 'invalid_request',
    message: 'template error: template: longer than 65536 characters',
  })
})

test('parameters nested too deeply or too long are rejected', async () => {
  await tiny()
  let stop: unknown = 'x'
  for (let depth = 0; depth < 20_000; depth++) stop = [stop]

  const [, deep] = await refused({ name: 'deep', from: 'tiny', parameters: { bogus: stop } })
  const [, long] = await refused({
    name: 'long',
    from: 'tiny',
    parameters: { bogus: 'x'.repeat(256 * 1024) },
  })

  expect([deep.code, long.code]).toEqual(['invalid_request', 'too_large'])
})

test('parameters that Ollama’s clients send are stored unchanged', async () => {
  await tiny()
  const parameters = { bogus: 5, num_ctx: 1_048_576, seed: null, stop: 'x', use_mmap: true }

  await made({ name: 'mine', from: 'tiny', parameters })

  const layers = await layersOf('mine')
  expect(JSON.parse(layers.find(({ kind }) => kind === 'params')?.text ?? '')).toEqual(parameters)
})

test('an abort creates no model', async () => {
  const digest = await upload(narrowModel)
  const leaving = new AbortController()
  const statuses: string[] = []

  const steps = createModel({ name: 'x', files: { 'a.gguf': digest } }, parts(), { signal: leaving.signal })
  for await (const { status } of steps) {
    statuses.push(status)
    leaving.abort()
  }

  expect(statuses).not.toContain('writing manifest')
  expect(await manifests.list()).toEqual([])
})

const projectorFile = adapterFile({
  entries: {
    ...adapterEntries,
    'general.type': textEntry('general.type', 'mmproj'),
    'general.architecture': textEntry('general.architecture', 'clip'),
  },
})

const splitFile = gguf([textEntry('general.architecture', 'llama'), countEntry('split.count', 2)])
