import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Token } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { config } from '../../../../../../../test/support/bindings.ts'
import { pooledDecoder, rankingModel } from '../../../../../../../test/support/made-models.ts'
import { encoderModel } from '../../../../../../../test/support/models.ts'
import type { RuntimeModel } from '../model.ts'
import type { PoolingInput } from '../pooling.ts'
import type { Libllama } from './libllama.ts'
import { loadModel } from './load.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pooling-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, file: Buffer): string => {
  const path = join(folder, name)
  writeFileSync(path, file)
  return path
}
const load = (modelPath: string, openNative?: () => Promise<Libllama | undefined>): Promise<RuntimeModel> =>
  loadModel({ ...config, modelPath }, { steps: 0 }, undefined, undefined, undefined, undefined, openNative)

const caller = { tenant: '', weight: 1, background: false, signal: new AbortController().signal }
const evaluate = async (model: RuntimeModel, inputs: readonly PoolingInput[]) =>
  ((await model.pooling?.pool.run(caller, (run) => run(inputs))) ?? []).map((vector) => Array.from(vector))
async function evaluateAlone(model: RuntimeModel, inputs: readonly PoolingInput[]) {
  const vectors: number[][] = []
  for (const input of inputs) vectors.push(...(await evaluate(model, [input])))
  return vectors
}

/** A text of `length` tokens, which differ. */
const textOf = (length: number, seed = 0): readonly Token[] =>
  Array.from({ length }, (_, at) => (300 + ((at * 37 + seed * 11) % 200)) as Token)
const mixed = [3, 40, 1, 17, 8, 25, 9].map((length, seed) => textOf(length, seed))

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, index) => sum + value * (y[index] ?? Number.NaN), 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}
function expectSame(ours: readonly number[][], theirs: readonly number[][], count: number): void {
  expect(ours).toHaveLength(count)
  for (const [index, vector] of ours.entries())
    expect(cosine(vector, theirs[index] ?? [])).toBeGreaterThan(0.9999)
}

describe('an embedding model', () => {
  test.each([
    ['an encoder', () => encoderModel],
    ['a decoder with mean pooling', () => write('mean.gguf', pooledDecoder(1))],
    ['a decoder with last-token pooling', () => write('last.gguf', pooledDecoder(3))],
  ])(
    'that is %s has the vectors of node-llama-cpp, for one text and for many',
    async (_what, path) => {
      const batched = await load(path())
      const single = await load(path(), async () => undefined)
      const inputs = mixed.map((text) => [text])

      const theirs = await evaluateAlone(single, inputs)
      expectSame(await evaluate(batched, inputs), theirs, mixed.length)
      expectSame(await evaluateAlone(batched, inputs), theirs, mixed.length)
      const { limits, maxTokens } = batched.pooling ?? {}
      expect({ limits, maxTokens, notes: batched.notes }).toEqual({
        limits: { tokens: 128, texts: 64 },
        maxTokens: 512,
        notes: [],
      })
    },
    60_000,
  )

  test('evaluates as many texts and as many tokens at a time as the limits allow', async () => {
    const batched = await load(encoderModel)
    const many = Array.from({ length: 64 }, (_, seed) => [textOf(2, seed)])
    const long = [textOf(512)]

    expectSame(await evaluate(batched, many), await evaluateAlone(batched, many), 64)
    expect((await evaluate(batched, [long]))[0]).toHaveLength(64)
  })

  test.each<[what: string, library: () => Promise<Libllama | undefined>]>([
    ['is missing', async () => undefined],
    ['cannot load the weights', async () => ({ loadWeights: () => Promise.reject(new Error('no')) })],
    [
      'gives other vectors in a batch',
      async () => ({
        loadWeights: async () => ({
          canBatch: true,
          openContext: async () => async (texts) => texts.map((_, index) => Float32Array.of(index, 1)),
        }),
      }),
    ],
  ])('evaluates one text at a time if the library %s, and a note says so', async (_what, library) => {
    const single = await load(encoderModel, library)
    const inputs = mixed.map((text) => [text])

    expect(single.notes).toEqual([expect.stringContaining('one text at a time')])
    expect(single.pooling?.limits.texts).toBe(1)
    expectSame(await evaluate(single, inputs), await evaluate(await load(encoderModel), inputs), mixed.length)
  })
})

test('a reranking model gives the scores of node-llama-cpp, for one document and for many', async () => {
  const path = write('ranker.gguf', rankingModel())
  const batched = await load(path)
  const single = await load(path, async () => undefined)
  const inputs = mixed.map((document) => [textOf(6, 5), document])

  const theirs = (await evaluateAlone(single, inputs)).flat()
  for (const ours of [await evaluate(batched, inputs), await evaluateAlone(batched, inputs)])
    for (const [index, score] of ours.flat().entries()) expect(score).toBeCloseTo(theirs[index] ?? 0, 3)
  expect(Math.max(...theirs) - Math.min(...theirs)).toBeGreaterThan(0.01)
  expect(batched.notes).toEqual([])
})
