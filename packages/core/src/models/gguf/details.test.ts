import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countEntry, entry, gguf, tensor, text, textEntry, u64 } from '../../../../../test/support/gguf.ts'
import { encoderModel, narrowModel, noiseModel } from '../../../../../test/support/models.ts'
import { formatParameterCount, readDetails } from './details.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'details-'))
})

afterAll(() => rm(folder, { recursive: true }))

const modelAt = (path: string) => ({
  name: 'some:latest',
  path,
  sizeBytes: 0,
  modifiedAt: new Date(0),
  digest: '',
  isBuiltIn: false,
})

async function modelOf(bytes: Uint8Array) {
  const path = join(folder, 'some.gguf')
  await writeFile(path, bytes)
  return modelAt(path)
}

const architecture = textEntry('general.architecture', 'llama')
const gap = (...tokens: readonly string[]) =>
  tokens.map((token) => countEntry(`tokenizer.ggml.${token}_token_id`, 5))
const template = (jinja: string) => textEntry('tokenizer.chat_template', jinja)

// Recorded from Ollama 0.33.0 with the same files.
test.each([
  ['llama', narrowModel, 3_640_576, '3.64M', 'Q8_0', 8192, 256, ['tools', 'thinking', 'completion']],
  ['bert', encoderModel, 2_086_400, '2.09M', 'F16', 512, 64, ['embedding']],
  ['llama', noiseModel, 2_146_624, '2.15M', 'F16', 4096, 64, ['tools', 'completion']],
])(
  'the details of a real %s equal Ollama’s',
  async (family, path, count, size, type, context, width, can) => {
    const details = await readDetails(modelAt(path))

    expect(details).toMatchObject({
      architecture: family,
      parameterCount: count,
      parameterSize: size,
      quantization: type,
      contextSize: context,
      embeddingSize: width,
      capabilities: can,
    })
  },
)

test('a file without metadata has details', async () => {
  const details = await readDetails(await modelOf(gguf([], [tensor('a', [10, 3]), tensor('b', [4])])))

  expect(details).toEqual({
    architecture: 'unknown',
    parameterCount: 34,
    parameterSize: '34',
    quantization: 'unknown',
    capabilities: ['completion'],
    metadata: {},
    tensors: [
      { name: 'a', type: 'F32', shape: [10, 3] },
      { name: 'b', type: 'F32', shape: [4] },
    ],
  })
})

test('the parameter count of the file is used', async () => {
  const count = entry('general.parameter_count', 10, u64(8_030_261_248))

  const details = await readDetails(await modelOf(gguf([count], [tensor('a', [3])])))

  expect(details).toMatchObject({ parameterCount: 8_030_261_248, parameterSize: '8.0B' })
})

test('values of wrong types are ignored', async () => {
  const details = await readDetails(
    await modelOf(
      gguf([
        countEntry('general.architecture', 1),
        textEntry('general.parameter_count', 'many'),
        entry('general.file_type', 8, text('15')),
        entry('unknown.context_length', 10, u64(2n ** 64n - 1n)),
        countEntry('tokenizer.chat_template', 1),
      ]),
    ),
  )

  expect(details).toMatchObject({ architecture: 'unknown', parameterCount: 0, quantization: 'unknown' })
  expect(details).not.toHaveProperty('contextSize')
  expect(details).not.toHaveProperty('chatTemplate')
})

test.each([
  [15, 'Q4_K_M'],
  [32, 'BF16'],
  [38, 'MXFP4_MOE'],
  [4, 'unknown'],
  [4_000_000_000, 'unknown'],
])('the file type %d is %s', async (type, name) => {
  const details = await readDetails(await modelOf(gguf([countEntry('general.file_type', type)])))

  expect(details.quantization).toBe(name)
})

test.each([
  [[], ['completion']],
  [[template('{{ messages }}')], ['completion']],
  [[template('{% if tools %}{% endif %}')], ['tools', 'completion']],
  [[template('<tool_call>')], ['tools', 'completion']],
  [[template("{{ '</think>' }}")], ['thinking', 'completion']],
  [[countEntry('llama.pooling_type', 0)], ['embedding']],
  [[countEntry('llama.vision.block_count', 2)], ['completion', 'vision']],
  [gap('fim_pre', 'fim_suf', 'fim_mid'), ['insert', 'completion']],
  [gap('prefix', 'suffix', 'fim_mid'), ['insert', 'completion']],
  [gap('fim_pre', 'fim_suf'), ['completion']],
  [
    [template('tools <think>'), ...gap('prefix', 'suffix', 'middle')],
    ['tools', 'insert', 'thinking', 'completion'],
  ],
  [[countEntry('llama.pooling_type', 1), ...gap('fim_pre', 'fim_suf', 'fim_mid')], ['embedding']],
  [
    [template('tools <think>'), countEntry('llama.audio.block_count', 2)],
    ['tools', 'thinking', 'completion', 'audio'],
  ],
])('capabilities come from the file, %#', async (entries, capabilities) => {
  const details = await readDetails(await modelOf(gguf([architecture, ...entries])))

  expect(details.capabilities).toEqual(capabilities)
})

test.each([
  [0, '0'],
  [999, '999'],
  [1_000, '1K'],
  [2_048, '2K'],
  [135_600, '136K'],
  [3_640_576, '3.64M'],
  [494_032_768, '494.03M'],
  [7_000_000, '7M'],
  [999_999_999, '1000.00M'],
  [7_000_000_000, '7B'],
  [3_212_749_888, '3.2B'],
  [671_026_419_200, '671.0B'],
])('%d parameters are %s', (count, size) => {
  expect(formatParameterCount(count)).toBe(size)
})

test('an encoder cannot generate, even without a pooling type', async () => {
  const { capabilities } = await readDetails(
    await modelOf(
      gguf(
        [textEntry('general.architecture', 'bert'), entry('bert.attention.causal', 7, Buffer.of(0))],
        [tensor('a', [4])],
      ),
    ),
  )

  expect(capabilities).not.toContain('completion')
})
