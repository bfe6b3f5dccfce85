/**
 * Writes an embedding model and a reranking model with random weights, for tests: a few kilobytes each. They understand
 * nothing, but texts with the same words have similar vectors. Format: the GGUF specification.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [width, inner, context] = [32, 64, 512]
const special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
const characters = [...'abcdefghijklmnopqrstuvwxyz0123456789.,:;!?-']
/** Every character as the beginning of a word, and as a part of it. */
const tokens = [...special, ...characters.map((one) => `▁${one}`), ...characters]

/** @returns the names of the models in the folder */
export function writeModels(folder) {
  writeFileSync(join(folder, 'random-embed.gguf'), model('mean', []))
  const head = [
    ['cls.weight', width, width],
    ['cls.bias', width],
    ['cls.output.weight', width, 1],
    ['cls.output.bias', 1],
  ]
  writeFileSync(join(folder, 'random-rerank.gguf'), model('rank', head))
  return { embed: 'random-embed', rerank: 'random-rerank' }
}

const pooling = { mean: 1, rank: 4 }

function model(kind, head) {
  const tensors = [
    ['token_embd.weight', width, tokens.length],
    ['position_embd.weight', width, context],
    ['token_types.weight', width, 2],
    ...norm('token_embd_norm'),
    ...['q', 'k', 'v', 'output'].flatMap((part) => linear(`blk.0.attn_${part}`, width, width)),
    ...norm('blk.0.attn_output_norm'),
    ...linear('blk.0.ffn_up', width, inner),
    ...linear('blk.0.ffn_down', inner, width),
    ...norm('blk.0.layer_output_norm'),
    ...head,
  ]
  const entries = [
    text('general.architecture', 'bert'),
    text('general.name', `random-${kind}`),
    ...Object.entries({
      context_length: context,
      embedding_length: width,
      block_count: 1,
      feed_forward_length: inner,
      'attention.head_count': 2,
      pooling_type: pooling[kind],
    }).map(([key, value]) => count(`bert.${key}`, value)),
    entry('bert.attention.layer_norm_epsilon', 6, f32(1e-12)),
    entry('bert.attention.causal', 7, Buffer.of(0)),
    count('tokenizer.ggml.token_type_count', 2),
    text('tokenizer.ggml.model', 'bert'),
    text('tokenizer.ggml.pre', 'bert-bge'),
    list('tokenizer.ggml.tokens', 8, tokens.map(string)),
    list(
      'tokenizer.ggml.token_type',
      5,
      tokens.map((_token, id) => u32(id < special.length ? 3 : 1)),
    ),
    ...Object.entries({ padding: 0, unknown: 1, cls: 2, bos: 2, seperator: 3, eos: 3, mask: 4 }).map(
      ([name, id]) => count(`tokenizer.ggml.${name}_token_id`, id),
    ),
  ]
  return gguf(entries, tensors)
}

const linear = (name, from, to) => [
  [`${name}.weight`, from, to],
  [`${name}.bias`, to],
]
const norm = (name) => [
  [`${name}.weight`, width],
  [`${name}.bias`, width],
]

/** Tensors of 32-bit floats, each at a multiple of 32 bytes. */
function gguf(entries, tensors) {
  let offset = 0
  const infos = []
  const data = []
  for (const [name, ...shape] of tensors) {
    const length = shape.reduce((product, size) => product * size, 1)
    const bytes = Buffer.alloc(Math.ceil((length * 4) / 32) * 32)
    for (let index = 0; index < length; index++) bytes.writeFloatLE(weight(name, index), index * 4)
    infos.push(Buffer.concat([string(name), u32(shape.length), ...shape.map(u64), u32(0), u64(offset)]))
    data.push(bytes)
    offset += bytes.length
  }
  const header = Buffer.concat([
    ...[Buffer.from('GGUF'), u32(3), u64(infos.length), u64(entries.length)],
    ...entries,
    ...infos,
  ])
  return Buffer.concat([header, Buffer.alloc((32 - (header.length % 32)) % 32), ...data])
}

/** Always the same noise. The weights of norms are 1, as in an untrained model, and those of layers are small. */
function weight(name, index) {
  if (name.includes('_norm.weight')) return 1
  if (name.endsWith('.bias')) return 0
  const noise = Math.sin(index * 12.9898 + name.length * 78.233) * 43_758.5453
  return (noise - Math.floor(noise) - 0.5) * (name === 'token_embd.weight' ? 2 : 0.1)
}

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer)
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
const f32 = (value) => Buffer.from(Float32Array.of(value).buffer)
const string = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])
const entry = (key, type, value) => Buffer.concat([string(key), u32(type), value])
const text = (key, value) => entry(key, 8, string(value))
const count = (key, value) => entry(key, 4, u32(value))
const list = (key, type, values) => entry(key, 9, Buffer.concat([u32(type), u64(values.length), ...values]))
