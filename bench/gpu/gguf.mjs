// Writes GGUF files with random weights, for benchmarks. Format: the GGUF specification, version 3. The words of such a
// model are noise, but speed, memory and token counts are those of a model of that shape.
import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'

/** Values of the format, by their type numbers: bytes of the fixed ones. */
const sizes = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 }
const textType = 8
const arrayType = 9
/**
 * Weights of the type q4_0: elements and bytes of a block, whose first two bytes are the scale. `spread` is the standard
 * deviation of random elements without the scale.
 */
const weights = { type: 2, elements: 32, bytes: 18, fileType: 2, spread: 4.61 }
const alignment = 32

/** Shapes of well-known models. */
export const shapes = {
  '1b': {
    layers: 16,
    width: 2_048,
    heads: 32,
    kvHeads: 8,
    feedForward: 8_192,
    context: 131_072,
    ropeBase: 5e5,
  },
  '8b': {
    layers: 32,
    width: 4_096,
    heads: 32,
    kvHeads: 8,
    feedForward: 14_336,
    context: 131_072,
    ropeBase: 5e5,
  },
  /** Only shows that the scripts work. */
  tiny: { layers: 2, width: 256, heads: 4, kvHeads: 2, feedForward: 512, context: 32_768, ropeBase: 5e5 },
}

/** Copies the tokenizer and the chat template of a model to a file without weights. */
export function keepTokenizer(from, to) {
  const { entries } = readTokenizer(from)
  writeFileSync(to, Buffer.concat([head(0, entries.length), ...entries]))
}

/** @param tokenizer a file with the tokenizer */
export function makeModel({ tokenizer, shape, path }) {
  const { entries, vocabulary } = readTokenizer(tokenizer)
  const { layers, width, heads, kvHeads, feedForward, context, ropeBase } = shapes[shape]
  const metadata = [
    textEntry('general.architecture', 'llama'),
    textEntry('general.name', `${shape}-random`),
    countEntry('general.file_type', weights.fileType),
    countEntry('llama.context_length', context),
    countEntry('llama.embedding_length', width),
    countEntry('llama.block_count', layers),
    countEntry('llama.feed_forward_length', feedForward),
    countEntry('llama.attention.head_count', heads),
    countEntry('llama.attention.head_count_kv', kvHeads),
    countEntry('llama.rope.dimension_count', width / heads),
    countEntry('llama.vocab_size', vocabulary),
    floatEntry('llama.rope.freq_base', ropeBase),
    floatEntry('llama.attention.layer_norm_rms_epsilon', 1e-6),
    ...entries,
  ]
  const kvWidth = (width / heads) * kvHeads
  const matrix = (name, rows, columns) => ({
    name: `${name}.weight`,
    shape: [columns, rows],
    deviation: columns ** -0.5,
  })
  const norm = (name) => ({ name: `${name}.weight`, shape: [width] })
  const tensors = [
    matrix('token_embd', vocabulary, width),
    matrix('output', vocabulary, width),
    norm('output_norm'),
    ...Array.from({ length: layers }, (_, layer) => `blk.${layer}`).flatMap((block) => [
      norm(`${block}.attn_norm`),
      matrix(`${block}.attn_q`, width, width),
      matrix(`${block}.attn_k`, kvWidth, width),
      matrix(`${block}.attn_v`, kvWidth, width),
      matrix(`${block}.attn_output`, width, width),
      norm(`${block}.ffn_norm`),
      matrix(`${block}.ffn_gate`, feedForward, width),
      matrix(`${block}.ffn_up`, feedForward, width),
      matrix(`${block}.ffn_down`, width, feedForward),
    ]),
  ]
  write(path, metadata, tensors)
}

function write(path, metadata, tensors) {
  const bytesOf = ({ shape, deviation }) => {
    const elements = shape.reduce((product, size) => product * size, 1)
    return deviation === undefined ? elements * 4 : (elements / weights.elements) * weights.bytes
  }
  let offset = 0
  const infos = tensors.map((tensor) => {
    const { name, shape, deviation } = tensor
    const type = deviation === undefined ? 0 : weights.type
    const info = Buffer.concat([text(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)])
    offset = align(offset + bytesOf(tensor))
    return info
  })
  const start = Buffer.concat([head(tensors.length, metadata.length), ...metadata, ...infos])
  const file = openSync(path, 'w')
  try {
    writeSync(file, pad(start))
    for (const tensor of tensors) {
      const { deviation } = tensor
      if (deviation === undefined) writeSync(file, pad(ones(bytesOf(tensor) / 4)))
      else writeBlocks(file, bytesOf(tensor), deviation / weights.spread)
    }
  } finally {
    closeSync(file)
  }
}

/** Writes pieces of a few MB, since a tensor may have a GB. */
function writeBlocks(file, bytes, scale) {
  const half = toHalf(scale)
  const piece = Buffer.alloc(weights.bytes * 2 ** 17)
  let left = bytes
  while (left > 0) {
    const part = piece.subarray(0, Math.min(left, piece.length))
    randomFillSync(part)
    for (let at = 0; at < part.length; at += weights.bytes) part.writeUInt16LE(half, at)
    writeSync(file, part)
    left -= part.length
  }
  writeSync(file, Buffer.alloc(align(bytes) - bytes))
}

/** The entries of a tokenizer as they are in the file, and the number of its tokens. */
function readTokenizer(path) {
  const bytes = readFileSync(path)
  const reader = new Reader(bytes, 'GGUF'.length + 4 + 8)
  const count = reader.u64()
  const entries = []
  let vocabulary = 0
  for (let index = 0; index < count; index++) {
    const from = reader.at
    const key = reader.text()
    const type = reader.u32()
    // An array begins with the type of its items, which their number follows.
    if (key === 'tokenizer.ggml.tokens') vocabulary = new Reader(bytes, reader.at + 4).u64()
    reader.skip(type)
    if (key.startsWith('tokenizer.')) entries.push(bytes.subarray(from, reader.at))
  }
  return { entries, vocabulary }
}

class Reader {
  constructor(bytes, at) {
    this.bytes = bytes
    this.at = at
  }

  u32() {
    this.at += 4
    return this.bytes.readUInt32LE(this.at - 4)
  }

  u64() {
    this.at += 8
    return Number(this.bytes.readBigUInt64LE(this.at - 8))
  }

  text() {
    const length = this.u64()
    this.at += length
    return this.bytes.toString('utf8', this.at - length, this.at)
  }

  skip(type) {
    if (type === textType) this.text()
    else if (type === arrayType) this.skipItems(this.u32(), this.u64())
    else this.at += sizes[type]
  }

  skipItems(type, count) {
    if (sizes[type]) this.at += count * sizes[type]
    else for (let item = 0; item < count; item++) this.skip(type)
  }
}

/** A positive normal number as a 16-bit float. */
function toHalf(value) {
  const exponent = Math.floor(Math.log2(value))
  return ((exponent + 15) << 10) | Math.round((value / 2 ** exponent - 1) * 1_024)
}

const align = (offset) => Math.ceil(offset / alignment) * alignment
const pad = (bytes) => Buffer.concat([bytes, Buffer.alloc(align(bytes.length) - bytes.length)])
const ones = (count) => Buffer.from(new Float32Array(count).fill(1).buffer)
const head = (tensors, entries) => Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors), u64(entries)])
const textEntry = (key, value) => Buffer.concat([text(key), u32(textType), text(value)])
const countEntry = (key, value) => Buffer.concat([text(key), u32(4), u32(value)])
const floatEntry = (key, value) => Buffer.concat([text(key), u32(6), f32(value)])
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

function u32(value) {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u64(value) {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function f32(value) {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
