import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapterEntries, adapterFile, halves, halvesFor } from '../../../../../test/support/adapter.ts'
import {
  arrayEntry,
  countEntry,
  entry,
  f32,
  gguf,
  tensor,
  textEntry,
} from '../../../../../test/support/gguf.ts'
import { findAdapterProblems } from './adapter-check.ts'
import { checkModel } from './check.ts'
import { type Gguf, readGguf } from './gguf.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'adapter-'))
})

afterAll(() => rm(folder, { recursive: true }))

const checkWith = (adapterPath: string, path = modelPath) =>
  checkModel({ name: 'some:latest', path, adapters: [{ path: adapterPath }] })

async function readBytes(bytes: Buffer): Promise<Gguf> {
  const path = join(folder, 'read.gguf')
  await writeFile(path, bytes)
  return readGguf(path)
}

async function checkBytes(bytes: Buffer, path?: string): Promise<void> {
  const adapter = join(folder, 'mine.gguf')
  await writeFile(adapter, bytes)
  await checkWith(adapter, path)
}

test.each([
  ['of one matrix', adapterFile()],
  ['of two matrices', adapterFile({ tensors: [...halves, ...halvesFor('blk.1.attn_q.weight', [256, 512])] })],
  [
    'with norm tensors, which llama.cpp ignores',
    adapterFile({ tensors: [...halves, ['blk.0.attn_norm.weight', [256]]] }),
  ],
  ['without alpha', adapterFile({ entries: { 'adapter.lora.alpha': textEntry('general.name', 'mine') } })],
])('an adapter %s fits its model', async (_what, bytes) => {
  await expect(checkBytes(bytes)).resolves.toBeUndefined()
})

const [halfA = ['', []], halfB = ['', []]] = halves
const down = 'blk.0.ffn_down.weight'
const embeddings = 'token_embd.weight'

test.each([
  ['an empty file', Buffer.alloc(0), 'not a GGUF file'],
  ['a truncated file', adapterFile().subarray(0, -64), 'cut off'],
  ['a truncated header', adapterFile().subarray(0, 150), 'ends too early|declares more'],
  [
    'an adapter for another architecture',
    adapterFile({ entries: { 'general.architecture': textEntry('general.architecture', 'qwen3') } }),
    'for qwen3 models, and this is a llama',
  ],
  [
    'an adapter of another kind',
    adapterFile({ entries: { 'adapter.type': textEntry('adapter.type', 'vector') } }),
    'not a LoRA adapter',
  ],
  [
    'a number as adapter type',
    adapterFile({ entries: { 'adapter.type': countEntry('adapter.type', 1) } }),
    'not a LoRA adapter',
  ],
  [
    'an integer alpha',
    adapterFile({ entries: { 'adapter.lora.alpha': countEntry('adapter.lora.alpha', 8) } }),
    'alpha is no 32-bit float',
  ],
  [
    'an infinite alpha',
    adapterFile({
      entries: { 'adapter.lora.alpha': entry('adapter.lora.alpha', 6, f32(Number.POSITIVE_INFINITY)) },
    }),
    'alpha is Infinity',
  ],
  [
    'an activated LoRA',
    adapterFile({ entries: { alora: arrayEntry('adapter.alora.invocation_tokens', 4) } }),
    'activated LoRA',
  ],
  ['no weights', adapterFile({ tensors: [] }), 'no weights'],
  ['an unrelated tensor', adapterFile({ tensors: [[down, [448, 256]]] }), 'neither lora_a nor lora_b'],
  ['only one LoRA half', adapterFile({ tensors: [halfA] }), 'only one half'],
  [
    'a tensor type that cannot be multiplied',
    adapterFile({ tensors: [halfA, [halfB[0], halfB[1], 26]] }),
    'of type I32',
  ],
  [
    'a matrix that the model lacks',
    adapterFile({ tensors: halvesFor('blk.99.ffn_down.weight', [448, 256]) }),
    'the model has no blk.99',
  ],
  ['a wider matrix', adapterFile({ tensors: halvesFor(down, [512, 256]) }), 'another shape'],
  ['halves of different ranks', adapterFile({ tensors: [halfA, [halfB[0], [8, 256]]] }), 'another shape'],
  [
    'halves without a rank',
    adapterFile({
      tensors: [
        [halfA[0], [448, 0]],
        [halfB[0], [0, 256]],
      ],
    }),
    'another shape',
  ],
  [
    'expert matrices for a model without experts',
    adapterFile({
      tensors: [
        [halfA[0], [448, 4, 2]],
        [halfB[0], [4, 256, 2]],
      ],
    }),
    'another shape',
  ],
  [
    'embeddings that the model also uses for its output',
    adapterFile({
      tensors: [
        [`${embeddings}.lora_a`, [4, 1536]],
        [`${embeddings}.lora_b`, [4, 256]],
      ],
    }),
    'twice',
  ],
])('%s is rejected, and the error names the adapter', async (_what, bytes, reason) => {
  await expect(checkBytes(bytes)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringMatching(
      `^The adapter mine.gguf of the model "some:latest" cannot be used: .*(${reason})`,
    ),
  })
})

test('the halves of embeddings must fit the transposed shape of the model', async () => {
  const base = join(folder, 'base.gguf')
  const [width, vocabulary] = [64, 100]
  const tensors = [embeddings, 'output.weight'].map((name) => [name, [width, vocabulary]] as const)
  await writeFile(
    base,
    adapterFile({ tensors, entries: { 'general.type': textEntry('general.type', 'model') } }),
  )
  const checkShapes = (a: readonly number[], b: readonly number[]) =>
    checkBytes(
      adapterFile({
        tensors: [
          [`${embeddings}.lora_a`, a],
          [`${embeddings}.lora_b`, b],
        ],
      }),
      base,
    )

  await expect(checkShapes([4, vocabulary], [4, width])).resolves.toBeUndefined()
  await expect(checkShapes([width, 4], [4, vocabulary])).rejects.toThrow('another shape')
  await expect(checkShapes([4, vocabulary], [8, width])).rejects.toThrow('another shape')
})

test('an adapter with very many tensors is checked fast, without blocking the event loop', async () => {
  const base = join(folder, 'large.gguf')
  const targets = Array.from({ length: 10_000 }, (_, at) => `blk.${at}.ffn_down.weight`)
  // A matrix without rows or columns has no data, so only the names take space.
  await writeFile(
    base,
    gguf(
      [adapterEntries['general.architecture'] as Buffer],
      targets.map((name) => tensor(name, [0, 0])),
    ),
  )
  const pairs = targets.flatMap((name) => [
    tensor(`${name}.lora_a`, [0, 4]),
    tensor(`${name}.lora_b`, [4, 0]),
  ])
  const adapter = await readBytes(gguf(Object.values(adapterEntries), pairs))
  let turns = 0
  const timer = setInterval(() => turns++, 0)

  const problems = findAdapterProblems(adapter, await readGguf(base))
  const started = performance.now()
  expect(await problems.next()).toMatchObject({ done: true })
  clearInterval(timer)

  // Searching the whole list for each tensor would take 10 times as long.
  expect(performance.now() - started).toBeLessThan(1_500)
  expect(turns).toBeGreaterThan(0)
})

test('a model is rejected as an adapter, and an adapter as a model', async () => {
  await expect(checkWith(modelPath)).rejects.toThrow('not a LoRA adapter')

  const path = join(folder, 'lora.gguf')
  await writeFile(path, adapterFile())
  const check = checkModel({ name: 'some:latest', path })
  await expect(check).rejects.toThrow('it is an adapter, not a model')
})

test('the error names a missing adapter', async () => {
  await expect(checkWith(join(folder, 'gone.gguf'))).rejects.toThrow(
    'adapter gone.gguf of the model "some:latest"',
  )
})
