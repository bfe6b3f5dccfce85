import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  arrayEntry,
  countEntry,
  entry,
  f32,
  gguf,
  header,
  tensor,
  text,
  textEntry,
  u8,
  u32,
  u64,
} from '../../../../../test/support/gguf.ts'
import { readGguf } from './gguf.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gguf-'))
})

afterAll(() => rm(folder, { recursive: true }))

async function pathOf(bytes: Uint8Array | string) {
  const path = join(folder, 'some.gguf')
  await writeFile(path, bytes)
  return path
}

test.each([
  ['an empty file', '', 'not a GGUF file'],
  ['a file shorter than a header', 'GGUF', 'not a GGUF file'],
  ['another kind of file', 'PK'.repeat(100), 'not a GGUF file'],
  ['text that begins like a GGUF', 'GGUF, or so it says, at some length', 'version is unknown'],
  ['a version from the future', header(9, 0n, 0n), 'version is unknown'],
  ['more tensors than bytes', header(3, 2n ** 63n, 0n), 'declares more data than it contains'],
  ['two tensors with one name', gguf([], [tensor('a', [4]), tensor('a', [4])]), 'a tensor twice'],
  ['more metadata than bytes', header(3, 0n, 1_000_000_000n), 'declares more data than it contains'],
])('%s is rejected', async (_what, bytes, reason) => {
  await expect(readGguf(await pathOf(bytes))).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(reason),
  })
})

test('metadata and tensors of a real model are read', async () => {
  const { version, metadata, tensors } = await readGguf(modelPath)

  expect(version).toBe(3)
  expect(metadata).toMatchObject({
    'general.architecture': 'llama',
    'llama.context_length': 8192,
    'llama.attention.layer_norm_rms_epsilon': 0.00001,
    'tokenizer.ggml.add_bos_token': false,
    'tokenizer.ggml.tokens': null,
  })
  expect(tensors).toHaveLength(57)
  expect(tensors).toContainEqual({ name: 'token_embd.weight', type: 'Q8_0', shape: [256, 1536] })
})

test('arrays: true reads the vocabulary of a real model', async () => {
  const { metadata } = await readGguf(modelPath, { arrays: true })

  const tokens = metadata['tokenizer.ggml.tokens'] as string[]
  expect(tokens).toHaveLength(1536)
  expect(tokens.slice(0, 3)).toEqual(['<|endoftext|>', '<|im_start|>', '<|im_end|>'])
  expect((metadata['tokenizer.ggml.token_type'] as number[]).slice(0, 4)).toEqual([3, 3, 3, 4])
})

test.each([2, 3])('values of all types are read in version %d', async (version) => {
  const double = Buffer.alloc(8)
  double.writeDoubleLE(0.1)
  const path = await pathOf(
    gguf(
      [
        entry('u8', 0, u8(255)),
        entry('i8', 1, u8(255)),
        entry('u16', 2, Buffer.of(255, 255)),
        entry('i16', 3, Buffer.of(255, 255)),
        entry('u32', 4, u32(0xffffffff)),
        entry('i32', 5, u32(0xffffffff)),
        entry('f32', 6, f32(1e-6)),
        entry('bool', 7, u8(1)),
        entry('text', 8, text('é𝄞')),
        entry('u64', 10, u64(2n ** 53n - 1n)),
        entry('large u64', 10, u64(2n ** 64n - 1n)),
        entry('i64', 11, u64(2n ** 64n - 1n)),
        entry('large i64', 11, u64(2n ** 63n)),
        entry('f64', 12, double),
        entry('__proto__', 8, text('just a key')),
      ],
      [],
      version,
    ),
  )

  const { metadata } = await readGguf(path)

  expect(Object.entries(metadata)).toEqual([
    ['u8', 255],
    ['i8', -1],
    ['u16', 65535],
    ['i16', -1],
    ['u32', 4294967295],
    ['i32', -1],
    ['f32', 0.000001],
    ['bool', true],
    ['text', 'é𝄞'],
    ['u64', 9007199254740991],
    ['large u64', '18446744073709551615'],
    ['i64', -1],
    ['large i64', '-9223372036854775808'],
    ['f64', 0.1],
    ['__proto__', 'just a key'],
  ])
})

const inner = (type: number, ...values: Buffer[]) => Buffer.concat([u32(type), u64(values.length), ...values])
const arrays = gguf(
  [
    arrayEntry('floats', 6, f32(0.1), f32(-13), f32(1e20)),
    arrayEntry('texts', 8, text('a'), text(''), text('b c')),
    arrayEntry('nested', 9, inner(8, text('x')), inner(0), inner(9, inner(0, u8(1), u8(2)))),
    arrayEntry('none', 8),
    arrayEntry('no numbers', 5),
    countEntry('after', 7),
  ],
  [tensor('w', [2, 3], 1), tensor('scalar', [])],
)

test('non-empty arrays are null by default', async () => {
  const { metadata, tensors } = await readGguf(await pathOf(arrays))

  expect(metadata).toEqual({
    floats: null,
    texts: null,
    nested: null,
    none: [],
    'no numbers': [],
    after: 7,
  })
  expect(tensors).toEqual([
    { name: 'w', type: 'F16', shape: [2, 3] },
    { name: 'scalar', type: 'F32', shape: [] },
  ])
})

test('arrays: true keeps arrays', async () => {
  const { metadata } = await readGguf(await pathOf(arrays), { arrays: true })

  expect(metadata).toEqual({
    floats: [0.1, -13, 1e20],
    texts: ['a', '', 'b c'],
    nested: [['x'], [], [[1, 2]]],
    none: [],
    'no numbers': [],
    after: 7,
  })
})

test.each([false, true])('a file larger than the window is read piece by piece, arrays: %s', async (kept) => {
  const words = Array.from({ length: 50_000 }, (_, i) => `word ${i}`)
  const long = 'long'.repeat(100_000)
  const path = await pathOf(
    gguf(
      [
        arrayEntry('words', 8, ...words.map(text)),
        textEntry('long', long),
        arrayEntry('numbers', 4, ...words.map((_, i) => u32(i))),
        arrayEntry('long words', 8, text(long), text('short'), text(long)),
      ],
      [tensor('last', [1])],
    ),
  )

  const { metadata, tensors } = await readGguf(path, { arrays: kept })

  expect(metadata).toEqual({
    words: kept ? words : null,
    long,
    numbers: kept ? words.map((_, i) => i) : null,
    'long words': kept ? [long, 'short', long] : null,
  })
  expect(tensors).toEqual([{ name: 'last', type: 'F32', shape: [1] }])
})

const one = (...bytes: Buffer[]) => Buffer.concat([header(3, 0, 1), ...bytes, Buffer.alloc(100)])
const deep = Buffer.concat(Array.from({ length: 1_000 }, () => Buffer.concat([u32(9), u64(1)])))

test.each([
  ['a key longer than the file', one(u64(2n ** 40n)), 'declares more'],
  ['a key above the length limit', one(text('k'.repeat(70_000)), u32(4), u32(1)), 'too long'],
  ['a text of 2^64 - 1 bytes', one(text('k'), u32(8), u64(2n ** 64n - 1n)), 'declares more'],
  ['a text of five megabytes', gguf([textEntry('k', 'x'.repeat(5_000_000))]), 'too long'],
  ['many texts', gguf(Array.from({ length: 30 }, () => textEntry('k', 'x'.repeat(3_000_000)))), 'too large'],
  ['a type from the future', one(text('k'), u32(13)), 'unknown type'],
  ['an array of a type from the future', one(text('k'), u32(9), u32(99), u64(0)), 'unknown type'],
  ['more numbers than bytes', one(text('k'), u32(9), u32(4), u64(1_000)), 'declares more'],
  ['more texts than bytes', one(text('k'), u32(9), u32(8), u64(2n ** 60n)), 'declares more'],
  ['more arrays than bytes', one(text('k'), u32(9), u32(9), u64(2n ** 60n)), 'declares more'],
  ['a text in an array that is too long', one(text('k'), u32(9), u32(8), u64(2), u64(500)), 'declares more'],
  ['deeply nested arrays', one(text('k'), u32(9), deep), 'too deep'],
  ['a file that ends in a value', gguf([countEntry('some key', 1)]).subarray(0, -1), 'ends too early'],
  ['five dimensions', gguf([], [tensor('w', [1, 1, 1, 1, 1])]), 'too many dimensions'],
  ['a tensor with more than 2^53 elements', gguf([], [tensor('w', [2 ** 30, 2 ** 30])]), 'too large'],
  ['one dimension of 0 and a huge dimension', gguf([], [tensor('w', [0, 2n ** 60n])]), 'too large'],
  ['a tensor of a removed type', gguf([], [tensor('w', [1], 31)]), 'unknown type'],
])('%s is rejected', async (_what, bytes, reason) => {
  const read = readGguf(await pathOf(bytes), { arrays: false, label: 'file of the model "some:latest"' })

  await expect(read).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringMatching(`^The file of the model "some:latest" cannot be used: .*${reason}`),
  })
})

test('the memory limit counts retained values, but no skipped values', async () => {
  const numbers = entry('k', 9, u32(0), u64(5_000_000), Buffer.alloc(5_000_000))
  const path = await pathOf(gguf([numbers]))

  await expect(readGguf(path)).resolves.toMatchObject({ metadata: { k: null } })
  await expect(readGguf(path, { arrays: true })).rejects.toThrow('metadata is too large')
})

test('the error for a missing file contains no path', async () => {
  const read = readGguf(join(folder, 'gone.gguf'))

  await expect(read).rejects.toMatchObject({
    code: 'upstream',
    message: 'The file of the model "gone.gguf" cannot be used: it cannot be read (ENOENT).',
  })
})

test('a folder is rejected', async () => {
  await expect(readGguf(folder)).rejects.toMatchObject({ code: 'upstream' })
})
