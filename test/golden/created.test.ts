/** Created models are stored byte for byte as in Ollama after the same requests (exchanges 511 to 564). */
import { createReadStream } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createModel } from '../../packages/core/src/models/modelfile/create.ts'
import type { CreateModelRequest } from '../../packages/core/src/models/modelfile/create-request.ts'
import { BlobStore } from '../../packages/core/src/models/ollama-store/blobs.ts'
import { digestOf, toDigest } from '../../packages/core/src/models/ollama-store/digest.ts'
import { ManifestStore } from '../../packages/core/src/models/ollama-store/manifests.ts'
import { parseModelName } from '../../packages/core/src/models/ollama-store/name.ts'
import { adapterFile } from '../support/adapter.ts'
import { encoderModel, narrowModel, noiseModel, recurrentModel } from '../support/models.ts'

const recorded = fileURLToPath(new URL('on-disk', import.meta.url))
const signal = AbortSignal.timeout(60_000)
const names = 'manifests/registry.ollama.ai/library'

/** Digest and size of a file as Ollama and as we store it. Ollama rewrites uploaded files. */
interface Weights {
  readonly file: string
  readonly theirs: readonly [digest: string, size: number]
  readonly ours: readonly [digest: string, size: number]
}
const tiny: Weights = {
  file: narrowModel,
  theirs: ['2f2b2c6374bf899d4428ffc634a6c6a37ea4cf3f30227799f597fcc42a9cb236', 3_926_592],
  ours: ['ce3791086e8bc7656202a10dbda922e245479e4d7482e299ea6df32e21ecd1ec', 3_926_560],
}
const bert: Weights = {
  file: encoderModel,
  theirs: ['d51e753f49128be2cd8cbdef6e20327ac8e560de4b0cd57fada5c8e5657a39ef', 4_872_000],
  ours: ['5fd93e8d70dc2a1dbe4cc4156417a761fbbdba932158d0e06eae3b135225d521', 4_871_968],
}
const spm: Weights = {
  file: noiseModel,
  theirs: ['497953cac9bbb0bf0f4596de5df92c4a5ca98d0a31092ebfd6150e1ee15eaf44', 5_021_600],
  ours: ['2c614c63511b9b63044d7e5c7f42d2a0473f02e3b2dc72c29acff279b317d25f', 5_021_568],
}
const mamba: Weights = {
  file: recurrentModel,
  theirs: ['1f27bab3b7b00aa6d9890ca7bfa818c20cde2d8e8d0f5115e61cec123ea89bc0', 8_373_344],
  ours: ['954e75145f01dc7b8306546a094ba5ce5593bfc072d27f5ddce5b2f70d000d49', 8_373_312],
}
/** The recorded adapter was made for another model, so ours has another digest and size. */
const lora = {
  bytes: adapterFile(),
  theirs: ['aa4f7906c8137439a5529d45162d4d5eca4affdcb2b04b701f9e506cbf7cf9ba', 7_936] as const,
}

const text = async (digest: string): Promise<string> =>
  readFile(join(recorded, 'blobs', `sha256-${digest}`), 'utf8')

/** The order matters, because some models are created from others. */
const creates: readonly CreateModelRequest[] = [
  { name: 'tiny', files: { 'tiny-chat.gguf': `sha256:${tiny.ours[0]}` } },
  { name: 'bert', files: { 'tiny-bert.f16.gguf': `sha256:${bert.ours[0]}` } },
  { name: 'spm', files: { 'tiny-llama-spm.f16.gguf': `sha256:${spm.ours[0]}` } },
  { name: 'mamba', files: { 'tiny-mamba.f16.gguf': `sha256:${mamba.ours[0]}` } },
  { name: 'noext', files: { weights: `sha256:${tiny.ours[0]}` } },
  {
    name: 'tinyset',
    from: 'tiny',
    system: 'You are Bob.',
    parameters: {
      temperature: 0,
      num_ctx: 2048,
      stop: ['\n\n', '<x>'],
      top_p: 0.95,
      num_predict: 24,
      bogus: 5,
    },
    license: ['L1', 'L2 "q"'],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello <b>!' },
    ],
  },
  {
    name: 'tinyset2',
    from: 'tinyset',
    system: 'Two\nlines',
    license: ['L3'],
    parameters: { top_p: 0.5 },
    messages: [],
  },
  {
    name: 'tinygo',
    from: 'tiny',
    template: await text('e3b2721cec511e3a627ae0993753abbf5c72cdf4cfcdbc8f5c33ce15c4c4e04b'),
  },
  {
    name: 'tinytools',
    from: 'tiny',
    template: await text('aa84ad547a2054f04479c861a54809e106af1b7f0e2fb8da7f49f376fa16c733'),
  },
  {
    name: 'tinyfim',
    from: 'tiny',
    template: await text('df6ab971125d14b0f5e675842d5ffc5c4ec20badd3b4fe1f671b330ba57e9825'),
  },
  {
    name: 'tinylegacy',
    from: 'tiny',
    template: await text('62fbfd9ed093d6e5ac83190c86eec5369317919f4b149598d2dbb38900e9faef'),
    parameters: { stop: ['<|im_end|>'] },
  },
  {
    name: 'tinythink',
    from: 'tiny',
    template: await text('59a8f31faae124be608b53298b195c97183a75444a6f1385379f77545731255b'),
  },
  {
    name: 'tinyinfo',
    from: 'tiny',
    info: {
      capabilities: ['vision'],
      base_name: 'bn',
      context_length: 99,
      parameter_size: '9B',
      quantization_level: 'QX',
      model_family: 'fam',
    },
  },
  { name: 'tinyreq', from: 'tiny', requires: '0.14.0' },
  { name: 'tinyreq2', from: 'tiny', requires: '9.9.9' },
  { name: 'lora3', files: { 'tiny-qwen3-lora.gguf': digestOf(lora.bytes) } },
  { name: 'user/thing:v1', from: 'tiny' },
  { name: 'example.com/a/b:c', from: 'tiny' },
  { name: 'foo:cloud', from: 'tiny' },
  { name: 'foo:local', from: 'tiny' },
  { name: 'fromlocal', from: 'tiny:local' },
  { name: 'msgbad', from: 'tiny', messages: [{ role: 'robot', content: 'x' }] },
  { name: 'pnull', from: 'tiny' },
  {
    name: 'bigctx',
    from: 'tiny',
    parameters: { num_ctx: 1_048_576, temperature: 0.7, seed: 42, repeat_penalty: 1.1, use_mmap: true },
  },
]

let root: string

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'created-'))
  const blobs = new BlobStore([root])
  const manifests = new ManifestStore([root], blobs)
  for (const { file, ours } of [tiny, bert, spm, mamba])
    await blobs.write(toDigest(`sha256:${ours[0]}`), createReadStream(file), signal)
  await blobs.add(lora.bytes)
  const parts = {
    blobs,
    manifests,
    find: async (name: string) => {
      const found = parseModelName(name)
      const entry = found && (await manifests.find(found))
      return entry && { entry }
    },
    pull: (name: string) => {
      throw new Error(`Unexpected pull of ${name}.`)
    },
    prune: true,
  }
  for (const spec of creates) {
    let last = ''
    for await (const { status } of createModel(spec, parts, { signal })) last = status
    expect(last, spec.name).toBe('success')
  }
})

afterAll(() => rm(root, { recursive: true }))

/** Replaces digests and sizes of the recorded weights by those of our files. */
function withOurs(manifest: string): string {
  const swaps = [tiny, bert, spm, mamba].map(({ theirs, ours }) => [theirs, ours] as const)
  const adapter = [digestOf(lora.bytes).slice('sha256:'.length), lora.bytes.length] as const
  return [...swaps, [lora.theirs, adapter] as const].reduce(
    (all, [theirs, ours]) =>
      all.replaceAll(`${theirs[0]}","size":${theirs[1]}`, `${ours[0]}","size":${ours[1]}`),
    manifest,
  )
}

test.each([
  ...creates.filter(({ name }) => !/[/:]/.test(name)).map(({ name }) => `${names}/${name}/latest`),
  `${names}/foo/cloud`,
  `${names}/foo/local`,
  'manifests/registry.ollama.ai/user/thing/v1',
  'manifests/example.com/a/b/c',
])('%s equals the manifest that Ollama wrote', async (path) => {
  const [theirs, ours] = await Promise.all(
    [recorded, root].map((folder) => readFile(join(folder, path), 'utf8')),
  )

  expect(ours).toBe(withOurs(theirs as string))
})

test('every blob but the weights equals one of Ollama’s', async () => {
  const weights = [tiny, bert, spm, mamba].map(({ ours }) => `sha256-${ours[0]}`)
  const known = [...weights, digestOf(lora.bytes).replace(':', '-')]

  const theirs = await readdir(join(recorded, 'blobs'))
  const ours = (await readdir(join(root, 'blobs'))).filter((file) => !known.includes(file))

  expect(theirs).toEqual(expect.arrayContaining(ours))
  expect(ours.length).toBeGreaterThan(20)
})
