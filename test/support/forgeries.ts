/** GGUF files with one error each. A file is built when `bytes` is called. */
import { readFileSync } from 'node:fs'
import { modelPath } from '@modelmount/tiny-model'
import { f32, text, u32, u64 } from './gguf.ts'
import { fileOf, type Parts, partsOf, type Tensor } from './gguf-parts.ts'
import { rankingModel } from './made-models.ts'
import { noiseModel } from './models.ts'
import { randomOf } from './random.ts'

export interface Forgery {
  readonly name: string
  readonly bytes: () => Buffer
}

type Entry = readonly [type: number, value: Buffer]

const count = (value: number): Entry => [4, u32(value)]
const float = (value: number): Entry => [6, f32(value)]
const words = (value: string): Entry => [8, text(value)]
const array = (type: number, values: readonly Buffer[]): Entry => [
  9,
  Buffer.concat([u32(type), u64(values.length), ...values]),
]
const counts = (...values: number[]): Entry => array(4, values.map(u32))
const texts = (values: readonly string[]): Entry => array(8, values.map(text))

/** Sets a metadata key, or removes it if no value is given. */
function withEntry(parts: Parts, key: string, value?: Entry): Parts {
  const entries = new Map(parts.entries)
  if (value) entries.set(key, value)
  else entries.delete(key)
  return { ...parts, entries }
}

function withTensor(parts: Parts, name: string, change: Partial<Tensor>): Parts {
  return { ...parts, tensors: parts.tensors.map((one) => (one.name === name ? { ...one, ...change } : one)) }
}

const extremes = [0, 1, 2 ** 31, 2 ** 32 - 1]
const numbers = [
  'context_length',
  'embedding_length',
  'block_count',
  'feed_forward_length',
  'attention.head_count',
  'attention.head_count_kv',
  'attention.key_length',
  'attention.value_length',
  'rope.dimension_count',
  'vocab_size',
  'expert_count',
  'expert_used_count',
  'expert_group_count',
  'nextn_predict_layers',
  'attention.sliding_window',
  'pooling_type',
]

/** Files with an extreme value for one number of the architecture. All these numbers are `u32`. */
const wrongNumbers = (parts: Parts): Forgery[] =>
  numbers.flatMap((key) =>
    extremes.map((value) => ({
      name: `${key} = ${value}`,
      bytes: () => fileOf(withEntry(parts, `llama.${key}`, count(value))),
    })),
  )

const floats = ['attention.layer_norm_rms_epsilon', 'rope.freq_base', 'rope.scaling.factor']
const wrongFloats = (parts: Parts): Forgery[] =>
  floats.flatMap((key) =>
    [0, -1, Number.NaN, Number.POSITIVE_INFINITY].map((value) => ({
      name: `${key} = ${value}`,
      bytes: () => fileOf(withEntry(parts, `llama.${key}`, float(value))),
    })),
  )

const tokens = 'tokenizer.ggml.tokens'
/** Wrong metadata entries, keyed by a description of the error. Without a value, the entry is removed. */
const wrongEntries: Readonly<Record<string, readonly [key: string, value?: Entry]>> = {
  'no architecture': ['general.architecture'],
  'an unknown architecture': ['general.architecture', words('unheard-of')],
  'an architecture that is a number': ['general.architecture', count(7)],
  'another architecture': ['general.architecture', words('mamba')],
  'no block count': ['llama.block_count'],
  'no feed_forward_length': ['llama.feed_forward_length'],
  'a block count that is a text': ['llama.block_count', words('2')],
  'a block count that is negative': ['llama.block_count', [5, u32(2 ** 32 - 2)]],
  'head counts for each layer, all 0': ['llama.attention.head_count', counts(0, 0, 0, 0, 0, 0)],
  'head counts for the wrong number of layers': ['llama.attention.head_count', counts(4)],
  'head counts of 1,000 layers': ['llama.attention.head_count', counts(...Array(1_000).fill(4))],
  'key and value heads for each layer, all 0': ['llama.attention.head_count_kv', counts(0, 0, 0, 0, 0, 0)],
  'an unknown rope scaling': ['llama.rope.scaling.type', words('unheard-of')],
  'no rope scaling': ['llama.rope.scaling.type', words('none')],
  'an alignment of 0': ['general.alignment', count(0)],
  'an alignment of 3': ['general.alignment', count(3)],
  'an alignment of 2^31': ['general.alignment', count(2 ** 31)],
  'an alignment that is a text': ['general.alignment', words('32')],
  'no tokenizer': ['tokenizer.ggml.model'],
  'a tokenizer without a vocabulary': ['tokenizer.ggml.model', words('no_vocab')],
  'a tokenizer called none': ['tokenizer.ggml.model', words('none')],
  'an unknown tokenizer': ['tokenizer.ggml.model', words('unheard-of')],
  'an SPM tokenizer': ['tokenizer.ggml.model', words('llama')],
  'a BPE tokenizer': ['tokenizer.ggml.model', words('gpt2')],
  'a WPM tokenizer': ['tokenizer.ggml.model', words('bert')],
  'a UGM tokenizer': ['tokenizer.ggml.model', words('t5')],
  'an RWKV tokenizer': ['tokenizer.ggml.model', words('rwkv')],
  'a PLaMo tokenizer': ['tokenizer.ggml.model', words('plamo2')],
  'an unknown pre-tokenizer': ['tokenizer.ggml.pre', words('unheard-of')],
  'no vocabulary': [tokens],
  'an empty vocabulary': [tokens, texts([])],
  'a vocabulary of one token': [tokens, texts(['a'])],
  'a vocabulary of numbers': [tokens, counts(1, 2, 3)],
  'a vocabulary that is a text': [tokens, words('abc')],
  'no scores': ['tokenizer.ggml.scores'],
  'too few scores': ['tokenizer.ggml.scores', array(6, [f32(0)])],
  'scores that are texts': ['tokenizer.ggml.scores', texts(['0'])],
  'no token types': ['tokenizer.ggml.token_type'],
  'too few token types': ['tokenizer.ggml.token_type', array(5, [u32(1)])],
  'no merges': ['tokenizer.ggml.merges'],
  'merges without a space': ['tokenizer.ggml.merges', texts(['', 'a', ' ', '  '])],
  'a BOS token outside the vocabulary': ['tokenizer.ggml.bos_token_id', count(2 ** 32 - 1)],
  'an EOS token outside the vocabulary': ['tokenizer.ggml.eos_token_id', count(2 ** 31)],
  'a template with a syntax error': ['tokenizer.chat_template', words('{% for %}')],
  'a template that raises': ['tokenizer.chat_template', words("{{ raise_exception('no') }}")],
  'an empty template': ['tokenizer.chat_template', words('')],
  'a template that is a number': ['tokenizer.chat_template', count(1)],
  'one file of a split model': ['split.count', [2, Buffer.of(3, 0)]],
  'a LoRA adapter': ['general.type', words('adapter')],
}

/** Changes that make a vocabulary wrong, keyed by a description of the error. */
const wrongTokens: Readonly<Record<string, (tokens: readonly string[]) => readonly string[]>> = {
  'a duplicate token': (all) => all.with(500, all[501] as string),
  'all tokens the same': (all) => all.map(() => 'same'),
  'all tokens empty': (all) => all.map(() => ''),
  'an empty token and a token with its placeholder text': (all) => all.with(300, '').with(301, '[EMPTY_300]'),
  'tokens that are only numbers': (all) => all.map((_, id) => `${id}`),
  'one token too many': (all) => [...all, 'one more'],
  'one token too few': (all) => all.slice(1),
}

const shapes: Readonly<Record<string, (shape: readonly bigint[]) => readonly bigint[]>> = {
  'no dimensions': () => [],
  'only empty dimensions': (shape) => shape.map(() => 0n),
  'an empty first dimension': ([, ...rest]) => [0n, ...rest],
  'one extra dimension': (shape) => [...shape, 1n],
  'five dimensions': () => [1n, 1n, 1n, 1n, 1n],
  'a doubled first dimension': ([first, ...rest]) => [(first as bigint) * 2n, ...rest],
  'a huge first dimension': ([, ...rest]) => [2n ** 40n, ...rest],
  'a negative first dimension': ([, ...rest]) => [2n ** 64n - 32n, ...rest],
}
const offsets = [1n, 2n ** 31n, 2n ** 64n - 32n]

const wrongTensors = (parts: Parts): Forgery[] =>
  ['token_embd.weight', 'blk.1.ffn_down.weight'].flatMap((name) => [
    ...Object.entries(shapes).map(([what, change]) => {
      const { shape } = parts.tensors.find((one) => one.name === name) as Tensor
      return {
        name: `${name} with ${what}`,
        bytes: () => fileOf(withTensor(parts, name, { shape: change(shape) })),
      }
    }),
    ...[0, 2, 24, 31, 99].map((type) => ({
      name: `${name} of type ${type}`,
      bytes: () => fileOf(withTensor(parts, name, { type })),
    })),
    ...offsets.map((offset) => ({
      name: `${name} at offset ${offset}`,
      bytes: () => fileOf(withTensor(parts, name, { offset })),
    })),
    {
      name: `${name} with an unknown name`,
      bytes: () => fileOf(withTensor(parts, name, { name: 'other.weight' })),
    },
    {
      name: `${name} with the name of another tensor`,
      bytes: () => fileOf(withTensor(parts, name, { name: 'output_norm.weight' })),
    },
    {
      name: `${name} with a very long name`,
      bytes: () => fileOf(withTensor(parts, name, { name: 'n'.repeat(64) })),
    },
    {
      name: `no ${name}`,
      bytes: () => fileOf({ ...parts, tensors: parts.tensors.filter((one) => one.name !== name) }),
    },
  ])

const weightsOf: Readonly<Record<string, number>> = { 'not a number': 0xff, zero: 0 }
const wrongWeights = (parts: Parts): Forgery[] =>
  Object.entries(weightsOf).map(([what, byte]) => ({
    name: `weights that are ${what}`,
    bytes: () => fileOf({ ...parts, weights: Buffer.alloc(parts.weights.length, byte) }),
  }))

function damaged(whole: Buffer, headBytes: number): Forgery[] {
  const random = randomOf(1)
  const cuts = [0, 8, 24, 400, headBytes - 1, headBytes, whole.length - 1]
  const randomCuts = Array.from({ length: 5 }, () => Math.floor(random() * whole.length))
  const places = Array.from({ length: 40 }, (_, index) => ({
    // Half of the bytes are among the first 1,200, which contain most numbers of the metadata.
    at: Math.floor(random() * (index % 2 ? 1_200 : headBytes)),
    value: Math.floor(random() * 256),
  }))
  return [
    ...[...cuts, ...randomCuts].map((length) => ({
      name: `truncated after ${length} bytes`,
      bytes: () => Buffer.from(whole.subarray(0, length)),
    })),
    ...places.map(({ at, value }) => ({
      name: `byte ${at} is ${value}`,
      bytes: () => {
        const bytes = Buffer.from(whole)
        bytes[at] = value
        return bytes
      },
    })),
  ]
}

const wholeNoise = readFileSync(noiseModel)
const noise = partsOf(wholeNoise)
const chat = partsOf(readFileSync(modelPath))

/** Files with an error in the tokenizer or in another metadata entry. */
function wrongVocabularies(parts: Parts): Forgery[] {
  const vocabulary = textsIn(parts.entries.get(tokens)?.[1] as Buffer)
  return [
    ...Object.entries(wrongEntries).map(([name, [key, value]]) => ({
      name,
      bytes: () => fileOf(withEntry(parts, key, value)),
    })),
    ...Object.entries(wrongTokens).map(([name, change]) => ({
      name,
      bytes: () => fileOf(withEntry(parts, tokens, texts(change(vocabulary)))),
    })),
  ]
}

function textsIn(value: Buffer): string[] {
  const found: string[] = []
  for (let at = 12; at < value.length; ) {
    const end = at + 8 + Number(value.readBigUInt64LE(at))
    found.push(value.toString('utf8', at + 8, end))
    at = end
  }
  return found
}

/**
 * Forged copies of two models: the noise model with an SPM vocabulary, and the built-in model with a BPE
 * vocabulary and quantized weights.
 */
export const forgeries: readonly Forgery[] = [
  ...wrongNumbers(noise),
  ...wrongFloats(noise),
  ...wrongVocabularies(noise),
  ...wrongTensors(noise),
  ...wrongWeights(noise),
  ...damaged(wholeNoise, wholeNoise.length - noise.weights.length),
  ...[...wrongVocabularies(chat), ...wrongTensors(chat)].map((one) => ({
    ...one,
    name: `${one.name}, in BPE`,
  })),
]

/** The noise model with another chat template. */
export const forgedTemplate = (template: string): Buffer =>
  fileOf(withEntry(noise, 'tokenizer.chat_template', words(template)))

const preTokenizer = 'tokenizer.ggml.pre'

/** The built-in model with another pre-tokenizer. */
export const forgedPreTokenizer = (name: string): Buffer => fileOf(withEntry(chat, preTokenizer, words(name)))

/** The built-in model as an embedding model, with another pre-tokenizer. */
export const forgedEmbedder = (name: string): Buffer =>
  fileOf(withEntry(withEntry(chat, 'llama.pooling_type', count(1)), preTokenizer, words(name)))

/** The reranking model with a BPE vocabulary and a pre-tokenizer. */
export function forgedRanker(name: string): Buffer {
  const entries = {
    'tokenizer.ggml.model': words('gpt2'),
    'tokenizer.ggml.merges': texts(['a a']),
    [preTokenizer]: words(name),
  }
  const parts = partsOf(rankingModel())
  return fileOf({ ...parts, entries: new Map([...parts.entries, ...Object.entries(entries)]) })
}
