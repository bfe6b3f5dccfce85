/** What a model makes of texts that it reads: contexts of one thread each, which read one text at a time. */
import type { LlamaModel, Token } from 'node-llama-cpp'
import type { Purpose } from '../model-kind.ts'
import { encoderOf } from './addon.ts'
import { Pool } from './context-pool.ts'

/** A vector of one text, or the rank of two, a query and a document: one number from 0 to 1. */
export type Reader = (...texts: readonly (readonly Token[])[]) => Promise<ArrayLike<number>>

export interface Reading {
  readonly makes: Purpose
  /** So many tokens at most, special ones among them. */
  readonly room: number
  /** How many tokens texts are together, with the special ones that are put between them. */
  lengthOf(query: readonly Token[], document: readonly Token[]): number
  /** What the longest text takes, in milliseconds. */
  readonly stepMs: number
  readonly pool: Pool<Reader>
}

interface Opened {
  readonly read: Reader
  readonly room: number
  readonly lengthOf: Reading['lengthOf']
}

const sampleTokens = 64
const anyToken = 0 as Token

/** @param most how many texts are read side by side */
export async function openReading(
  model: LlamaModel,
  makes: 'vectors' | 'ranks',
  contextSize: number,
  most: number,
  inside = encoderOf,
): Promise<Reading> {
  const open = (): Promise<Opened> =>
    makes === 'ranks' ? openRanker(model, contextSize) : openEncoder(model, contextSize, inside)
  const { read, room, lengthOf } = await open()
  const sample = Array<Token>(Math.min(sampleTokens, room >> 1)).fill(anyToken)
  const texts = makes === 'ranks' ? [sample.slice(sample.length >> 1), sample.slice(0, 1)] : [sample]
  // The first time weights are read from the disk, and buffers made.
  await read(...texts)
  const startedAt = performance.now()
  await read(...texts)
  const stepMs = ((performance.now() - startedAt) * room) / sample.length
  return { makes, room, lengthOf, stepMs, pool: new Pool(read, async () => (await open()).read, most) }
}

/** All of a text in one batch: of pieces an encoder would see no more than each. */
const optionsFor = (contextSize: number) => ({ contextSize, batchSize: contextSize, threads: 1 })

async function openEncoder(
  model: LlamaModel,
  contextSize: number,
  inside: typeof encoderOf,
): Promise<Opened> {
  const context = await model.createEmbeddingContext(optionsFor(contextSize))
  const encoder = inside(context)
  const lengthOf = (...texts: readonly (readonly Token[])[]): number =>
    texts.reduce((sum, { length }) => sum + length, 0)
  // What is public leaves room for an answer.
  if (!encoder) {
    const read = async (text: readonly Token[] = []) => (await context.getEmbeddingFor([...text])).vector
    return { read, room: contextSize - 1, lengthOf }
  }
  const read = async (text: readonly Token[] = []): Promise<Float64Array> => {
    encoder.removeTokenCellsFromSequence(0, -1, -1)
    encoder.initBatch(text.length)
    encoder.addToBatch(0, 0, Uint32Array.from(text), Uint32Array.of(text.length - 1))
    await encoder.decodeBatch()
    return encoder.getEmbedding(text.length)
  }
  return { read, room: contextSize, lengthOf }
}

async function openRanker(model: LlamaModel, contextSize: number): Promise<Opened> {
  const context = await model.createRankingContext(optionsFor(contextSize))
  return {
    read: async (query = [], document = []) => [await context.rank([...query], [...document])],
    room: contextSize - 1,
    lengthOf: (query, document) => context.calculateInputLength([...query], [...document]),
  }
}
