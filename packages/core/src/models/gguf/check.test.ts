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
  tensor,
  text,
  textEntry,
  u32,
  u64,
} from '../../../../../test/support/gguf.ts'
import { encoderModel, noiseModel } from '../../../../../test/support/models.ts'
import { checkModel } from './check.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'check-'))
})

afterAll(() => rm(folder, { recursive: true }))

const check = (path: string) => checkModel({ name: 'some:latest', path })

async function checkFile(entries: readonly Buffer[], tensors: readonly Buffer[] = [], weightBytes = 4_096) {
  const path = join(folder, 'some.gguf')
  await writeFile(path, Buffer.concat([gguf(entries, tensors), Buffer.alloc(weightBytes + 32)]))
  return check(path)
}

const named = (architecture: string) => textEntry('general.architecture', architecture)
const some = named('some')
const counts = (key: string, ...values: number[]) => arrayEntry(key, 4, ...values.map(u32))
const tokens = (...words: string[]) => arrayEntry('tokenizer.ggml.tokens', 8, ...words.map(text))
const tokenizer = (name: string) => textEntry('tokenizer.ggml.model', name)
const attention = [tensor('blk.0.attn_q.weight', [4, 4]), tensor('blk.0.attn_k.weight', [4, 4])]
const feedForward = [tensor('blk.0.ffn_down.weight', [4, 4])]

test.each([modelPath, noiseModel, encoderModel])('a valid model passes: %s', async (path) => {
  await expect(check(path)).resolves.toBeUndefined()
})

test.each<[what: string, entries: readonly Buffer[], tensors?: readonly Buffer[]]>([
  ['a file without metadata', []],
  [
    'keys and values of different lengths in another architecture',
    [some, countEntry('some.attention.key_length', 8), countEntry('some.attention.value_length', 4)],
  ],
  ['layers without attention', [some, countEntry('some.attention.head_count', 0)], feedForward],
  ['single layers without attention', [some, counts('some.attention.head_count_kv', 0, 8)], attention],
  ['single layers without feed-forward', [some, counts('some.feed_forward_length', 0, 4)], feedForward],
  ['attention without metadata', [some], attention],
  ['metadata of another architecture', [some, countEntry('llama.block_count', 0)]],
  ['2 of 8 experts', [some, countEntry('some.expert_count', 8), countEntry('some.expert_used_count', 2)]],
  ['a context of ten million', [some, countEntry('some.context_length', 10_485_760)]],
  ['an epsilon of 0', [entry('some.attention.layer_norm_epsilon', 6, f32(0))]],
  ['a known rope scaling', [some, textEntry('some.rope.scaling.type', 'yarn')]],
  ['empty tokens', [tokenizer('gpt2'), tokens('a', '', 'b', '')]],
  ['tokens that are not valid UTF-8', [tokenizer('gpt2'), tokens('a', '\uFFFD', '\uFFFD')]],
  ['an SPM vocabulary without bytes', [tokenizer('llama'), tokens('a', '▁')]],
  ['an SPM vocabulary without spaces', [tokenizer('llama'), tokens('a', '<0xE2>')]],
  ['integers in a tensor that is not a weight', [], [tensor('table', [4, 4], 26)]],
])('%s passes', async (_what, entries, tensors) => {
  await expect(checkFile(entries, tensors)).resolves.toBeUndefined()
})

const experts = (count: number, used: number, groups = 0, groupsUsed = 0) => [
  some,
  countEntry('some.expert_count', count),
  countEntry('some.expert_used_count', used),
  countEntry('some.expert_group_count', groups),
  countEntry('some.expert_group_used_count', groupsUsed),
]

test.each<[what: string, reason: string, entries: readonly Buffer[], tensors?: readonly Buffer[]]>([
  ['weights beyond the end', 'cut off', [], [tensor('w', [2_000])]],
  ['weights that begin beyond the end', 'cut off', [], [tensor('w', [1], 0, 2n ** 63n)]],
  ['an alignment of 3', 'no power of two', [countEntry('general.alignment', 3)], [tensor('w', [1])]],
  ['weights of a storage-only type', 'of type I8', [], [tensor('w.weight', [4, 4], 24)]],
  ['no layers', 'cannot have 0 layers', [some, countEntry('some.block_count', 0)]],
  ['too many layers', 'cannot have 513 layers', [some, countEntry('some.block_count', 513)]],
  ['a context of 2^31', 'context', [some, countEntry('some.context_length', 2 ** 31)]],
  ['no heads', 'head_count of 0', [some, countEntry('some.attention.head_count', 0)], attention],
  ['no heads in any layer', 'head_count of 0', [some, counts('some.attention.head_count', 0, 0)], attention],
  ['no key heads', 'head_count_kv of 0', [some, countEntry('some.attention.head_count_kv', 0)], attention],
  [
    'values that are shorter than keys, in the architecture llama',
    'keys and values have different lengths, 8 and 1',
    [
      named('llama'),
      countEntry('llama.embedding_length', 32),
      countEntry('llama.attention.head_count', 4),
      countEntry('llama.attention.value_length', 1),
    ],
  ],
  ['very many heads', 'head_count is too large', [some, countEntry('some.attention.head_count', 2 ** 16)]],
  [
    'no feed-forward',
    'feed_forward_length of 0',
    [some, countEntry('some.feed_forward_length', 0)],
    feedForward,
  ],
  ['too many experts', 'cannot have 1025 experts', experts(1_025, 1)],
  ['experts of which none is used', 'use 0 of 8', experts(8, 0)],
  ['more used experts than experts', 'use 9 of 8', experts(8, 9)],
  ['groups without experts', '1 groups of 0', experts(0, 0, 1)],
  ['groups that do not divide the experts', 'use 1 of 3 groups of 8', experts(8, 2, 3, 1)],
  ['a negative epsilon', 'epsilon is -1', [entry('some.attention.layer_norm_epsilon', 6, f32(-1))]],
  ['an epsilon of NaN', 'epsilon is NaN', [entry('some.epsilon', 6, f32(Number.NaN))]],
  ['a rope scaling from the future', 'rope scaling', [some, textEntry('some.rope.scaling.type', 'new')]],
  ['a tokenizer without a vocabulary', 'no vocabulary', [tokenizer('no_vocab')]],
  ['an empty vocabulary', 'empty', [tokenizer('gpt2'), tokens()]],
  ['a duplicate token', 'twice', [tokenizer('gpt2'), tokens('a', 'b', 'a')]],
  ['a token with the name of an empty token', 'twice', [tokenizer('gpt2'), tokens('[EMPTY_1]', '')]],
  ['an SPM tokenizer with another vocabulary', 'does not fit', [tokenizer('llama'), tokens('a', 'Ġ')]],
  ['a WPM tokenizer with another vocabulary', 'does not fit', [tokenizer('bert'), tokens('a', '<0xE2>')]],
  ['an RWKV tokenizer with another vocabulary', 'does not fit', [tokenizer('rwkv'), tokens('a', 'b')]],
])('%s is rejected', async (_what, reason, entries, tensors) => {
  await expect(checkFile(entries, tensors)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringMatching(`^The file of the model "some:latest" cannot be used: .*${reason}`),
  })
})

test('checking a large vocabulary does not block the event loop', async () => {
  const count = 256_000
  const large = (key: string, type: number, of: (id: number) => Buffer): Buffer =>
    entry(key, 9, u32(type), u64(count), Buffer.concat(Array.from({ length: count }, (_, id) => of(id))))
  const path = join(folder, 'large.gguf')
  await writeFile(
    path,
    gguf([
      tokenizer('gpt2'),
      large('tokenizer.ggml.tokens', 8, (id) => text(`token ${id}`)),
      large('tokenizer.ggml.scores', 4, u32),
    ]),
  )
  let longestMs = 0
  let last = performance.now()
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last)
    last = performance.now()
  }, 1)

  await check(path)
  clearInterval(timer)

  // The limit is generous for busy machines. Without yielding, the longest block would be ten times longer.
  expect(longestMs).toBeLessThan(100)
})
