import {
  getLlama,
  type Llama,
  LlamaLogLevel,
  type LlamaModel,
  type LlamaOptions,
  type Token,
} from 'node-llama-cpp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encoderModel, noiseModel } from '../../../../../../../test/support/models.ts'
import { detectModelTask } from '../model-kind.ts'
import type { PoolingContexts } from '../pooling.ts'
import { openPoolingContexts } from './pooling-contexts.ts'

const options: LlamaOptions = { build: 'never', skipDownload: true, progressLogs: false, maxThreads: 1 }
let llama: Llama
let model: LlamaModel

beforeAll(async () => {
  llama = await getLlama({ ...options, logLevel: LlamaLogLevel.error })
  model = await llama.loadModel({ modelPath: encoderModel })
})
afterAll(() => llama.dispose())

const [begin, fox, end] = [101, 4_419, 102] as Token[] as [Token, Token, Token]
const foxes = (count: number): readonly Token[] => [begin, ...Array<Token>(count).fill(fox), end]
const caller = { tenant: '', weight: 1, background: false, signal: new AbortController().signal }
const read = async ({ pool }: PoolingContexts, text: readonly Token[]): Promise<number[]> =>
  Array.from((await pool.run(caller, (evaluate) => evaluate([[text]])))?.[0] ?? [])

test('internals and public API give the same embeddings; the public API takes one token less', async () => {
  const own = await openPoolingContexts(model, 'embed', 512, 1)
  const publicly = await openPoolingContexts(model, 'embed', 512, 1, () => undefined)

  for (const count of [1, 30, 500]) {
    const [a, b] = [await read(own, foxes(count)), await read(publicly, foxes(count))]
    expect(a).toHaveLength(64)
    expect(a).toEqual(b)
  }
  expect([own.maxTokens, publicly.maxTokens]).toEqual([512, 511])
  expect(own.stepMs).toBeGreaterThan(0)
})

test('a text as long as the context is embedded, independently of the text before', async () => {
  const reading = await openPoolingContexts(model, 'embed', 512, 1)
  const short = await read(reading, foxes(3))

  const long = await read(reading, foxes(510))

  expect(long).not.toEqual(short)
  expect(await read(reading, foxes(3))).toEqual(short)
})

test('the model file decides on the task of the model', async () => {
  const writer = await llama.loadModel({ modelPath: noiseModel })

  expect([detectModelTask(model.fileInsights), detectModelTask(writer.fileInsights)]).toEqual([
    'embed',
    'generate',
  ])
})

test.each<[what: string, metadata: object, supportsRanking: boolean, purpose: string]>([
  ['a decoder with pooling', { pooling_type: 3 }, false, 'embed'],
  ['a model with pooling and a ranking head', { pooling_type: 2 }, true, 'rerank'],
  ['an encoder without pooling', { attention: { causal: false } }, false, 'unsupported'],
  ['an encoder that pools nothing', { pooling_type: 0, attention: { causal: false } }, false, 'unsupported'],
  ['a decoder that pools nothing', { pooling_type: 0 }, false, 'generate'],
  ['a model with rank pooling and no head', { pooling_type: 4 }, false, 'unsupported'],
])('detects the task of %s', (_what, architectureMetadata, supportsRanking, purpose) => {
  const insights = { supportsRanking, ggufFileInfo: { architectureMetadata } }

  expect(detectModelTask(insights as unknown as Parameters<typeof detectModelTask>[0])).toBe(purpose)
})
