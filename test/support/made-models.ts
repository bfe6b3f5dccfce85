/** Builds models of kinds that have no file in `test/models`, from the models that have one. */
import { readFileSync } from 'node:fs'
import { modelPath } from '@modelmount/tiny-model'
import { f32, u8, u32 } from './gguf.ts'
import { fileOf, type Parts, partsOf } from './gguf-parts.ts'
import { encoderModel, noiseModel } from './models.ts'

const [countType, flagType] = [4, 7]
const alignment = 32

/**
 * The embedding model with a random classification head. The result is a reranking model.
 * @param seed selects the weights of the head, and so the order of documents
 * @param flags metadata about special tokens
 */
export function rankingModel(seed = 0, flags: Readonly<Record<string, boolean>> = {}): Buffer {
  const parts = partsOf(readFileSync(encoderModel))
  const headed = [
    ['cls.weight', 64n, 64n],
    ['cls.bias', 64n],
    ['cls.output.weight', 64n, 1n],
    ['cls.output.bias', 1n],
  ] as const
  const made = withCounts(
    headed.reduce((made, [name, ...shape]) => withNoise(made, name, shape, seed), parts),
    { 'bert.pooling_type': 4 },
  )
  const added = Object.entries(flags).map(([key, value]) => [key, [flagType, u8(Number(value))]] as const)
  return fileOf({ ...made, entries: new Map([...made.entries, ...added]) })
}

/** Token ids for infill. The ids are arbitrary, because the built-in model was not trained for infill. */
export const gapTokens = { prefix: 300, suffix: 301, middle: 302 }
/** The built-in model with metadata for infill. */
export const gapModel = (): Buffer =>
  fileOf(
    withCounts(partsOf(readFileSync(modelPath)), {
      'tokenizer.ggml.fim_pre_token_id': gapTokens.prefix,
      'tokenizer.ggml.fim_suf_token_id': gapTokens.suffix,
      'tokenizer.ggml.fim_mid_token_id': gapTokens.middle,
    }),
  )

/**
 * The decoder with random weights as an embedding model.
 * @param pooling llama.cpp's pooling type: 1 for the mean, 3 for the last token
 */
export const pooledDecoder = (pooling: 1 | 3): Buffer =>
  fileOf(withCounts(partsOf(readFileSync(noiseModel)), { 'llama.pooling_type': pooling }))

/** The same model with one more metadata entry, so that its file has another digest. */
export const variantOf = (path: string): Buffer =>
  fileOf(withCounts(partsOf(readFileSync(path)), { 'general.variant': 1 }))

function withCounts(parts: Parts, counts: Readonly<Record<string, number>>): Parts {
  const added = Object.entries(counts).map(([key, value]) => [key, [countType, u32(value)]] as const)
  return { ...parts, entries: new Map([...parts.entries, ...added]) }
}

/** Adds a tensor of 32-bit floats with fixed values. */
function withNoise(parts: Parts, name: string, shape: readonly bigint[], seed: number): Parts {
  const length = Number(shape.reduce((product, size) => product * size, 1n))
  const values = Array.from({ length }, (_, index) => f32(Math.sin(index * 12.9898 + name.length + seed) / 4))
  const offset = Math.ceil(parts.weights.length / alignment) * alignment
  const gap = Buffer.alloc(offset - parts.weights.length)
  return {
    ...parts,
    tensors: [...parts.tensors, { name, shape, type: 0, offset: BigInt(offset) }],
    weights: Buffer.concat([parts.weights, gap, ...values]),
  }
}
