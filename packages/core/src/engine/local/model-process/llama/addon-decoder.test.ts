import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Llama, LlamaContext, LlamaModel, Token } from 'node-llama-cpp'
import { afterAll, expect, test, vi } from 'vitest'
import { config } from '../../../../../../../test/support/bindings.ts'
import type { Decoder } from '../decoding/decoder.ts'
import { openDecoder } from './addon-decoder.ts'
import { loadModel } from './load.ts'

const folder = mkdtempSync(join(tmpdir(), 'states-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('decode and prefill steps have separate thread counts, and deterministic decode steps a fixed one', async () => {
  const log: number[] = []
  const { decoder, sampler } = scripted({ setThreads: (threads: number) => log.push(threads) })
  const step = (tokens: number, isDeterministic: boolean) =>
    decoder?.decode([
      { sequence: 0, position: 0, tokens: Array<Token>(tokens).fill(1 as Token), sampler, isDeterministic },
    ])

  for (const [answers, prompts] of [
    [3, 7],
    [2, 4],
  ] as const) {
    decoder?.setThreads(answers, prompts)
    await step(1, false)
    await step(1, true)
    await step(5, false)
    await step(5, true)
  }

  expect(log).toEqual([3, 1, 7, 7, 2, 1, 4, 4])
})

test('a failed step rejects after its samples have ended, since the caller then frees their samplers', async () => {
  vi.stubEnv('UV_THREADPOOL_SIZE', '1')
  vi.resetModules()
  const { openDecoder } = await import('./addon-decoder.ts')
  vi.unstubAllEnvs()
  const log: string[] = []
  const fails = {
    decodeBatch: () => Promise.reject(new Error('Eval has failed')),
    async sampleToken() {
      await delay(20)
      log.push('drawn')
      return 1
    },
  }
  const { decoder, sampler } = scripted(fails, openDecoder)

  const step = decoder?.decode([
    { sequence: 0, position: 0, tokens: [1 as Token], sampler, isDeterministic: false },
  ])

  await expect(step?.finally(() => log.push('failed'))).rejects.toThrow('Eval has failed')
  expect(log).toEqual(['drawn', 'failed'])
})

test('prompt logprobs are read row by row, and a failed probe is an error', async () => {
  let [inside, most, isBroken] = [0, 0, false]
  const asked: unknown[] = []
  const { decoder } = scripted({
    addToBatch: (_sequence: number, _position: number, _tokens: unknown, outputs: Uint32Array) => outputs,
    async sampleToken(output: number, _sampler: object, ...[, , logits]: unknown[]) {
      most = Math.max(most, ++inside)
      await delay(1)
      inside--
      if (isBroken) throw new Error('no logits')
      const [[token]] = logits as [[number]]
      asked.push([output, token])
      return [token, undefined, undefined, [token, -token, 99, 0], 1]
    },
  })
  const sampler = decoder?.createSampler({ ...greedy, logprobs: 0 }, [])
  if (!decoder || !sampler) throw new Error('The internals of node-llama-cpp have changed.')
  const tokens = [4, 5, 6] as Token[]
  const step = () =>
    decoder.decode([
      {
        sequence: 0,
        position: 0,
        tokens,
        targets: { tokens: tokens.slice(1), sampler },
        isDeterministic: false,
      },
    ])

  expect(await step()).toEqual([[]])
  expect(asked).toEqual([
    [0, 5],
    [1, 6],
  ])
  expect(most).toBe(1)
  expect(sampler.targetLogprobs?.map(({ logprob }) => logprob)).toEqual([-5, -6])
  isBroken = true
  expect(await step()).toEqual([[expect.any(Error)]])
})

test.each([
  ['fewer tokens than a chunk, after a long text', 1_280, [50], [50]],
  ['a whole chunk', 1_280, [64], []],
  ['few tokens', 1_280, [49], []],
  ['one token, which is a decode step', 65_000, [1], []],
  ['tokens after a shorter text', 1_279, [50], []],
  ['several prompts', 1_280, [30, 20], []],
  ['the end of the context', 65_480, [50], []],
])('%s: padding tokens fill up a chunk and are removed again', async (_what, position, lengths, filled) => {
  const log: (readonly [string, number, number])[] = []
  const { decoder } = scripted({
    initBatch: (size: number) => log.push(['rows', 0, size]),
    addToBatch(_sequence: number, at: number, tokens: Uint32Array, rows: Uint32Array) {
      log.push(['tokens', at, tokens.length])
      return rows
    },
    removeTokenCellsFromSequence: (_sequence: number, from: number, to: number) =>
      log.push(['gone', from, to]),
  })
  const piece = (length: number, sequence: number) => ({
    sequence,
    position,
    tokens: Array<Token>(length).fill(7 as Token),
    isDeterministic: true,
  })

  await decoder?.decode(lengths.map(piece))

  const rows = filled.length > 0 ? 64 : lengths.reduce((sum, length) => sum + length, 0)
  expect(log).toEqual([
    ['rows', 0, rows],
    ...lengths.map((length) => ['tokens', position, filled.length > 0 ? 64 : length]),
    ...filled.map((length) => ['gone', position + length, -1]),
  ])
})

test('without flash attention, nothing is padded', async () => {
  const rows: number[] = []
  const { decoder } = scripted({ initBatch: (size: number) => rows.push(size) }, openDecoder, false)

  await decoder?.decode([
    { sequence: 0, position: 1_280, tokens: Array<Token>(50).fill(7 as Token), isDeterministic: true },
  ])

  expect(rows).toEqual([50])
})

const greedy = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0, bias: [] }

/** A decoder over scripted internals of node-llama-cpp. */
function scripted(context: object, open = openDecoder, flashAttention = true) {
  class AddonSampler {
    static canBeNextTokenForGrammarEvaluationState(): void {}
    static acceptGrammarEvaluationStateToken(): void {}
    applyConfig(): void {}
    dispose(): void {}
  }
  const _ctx = {
    initBatch() {},
    addToBatch: () => Uint32Array.of(0),
    async decodeBatch() {},
    sampleToken: async () => 1,
    removeTokenCellsFromSequence: () => true,
    getSequenceKvCacheMinPosition: () => 0,
    saveSequenceStateToFile: async () => 0,
    loadSequenceStateFromFile: async () => new Uint32Array(),
    copySequenceStateFromOtherSequence: async () => 0,
    setThreads() {},
    ...context,
  }
  const decoder = open(
    { _bindings: { AddonSampler }, gpu: false } as unknown as Llama,
    { _model: {}, fileInsights: {} } as unknown as LlamaModel,
    { _ctx, contextSize: 65_536, idealThreads: 1, flashAttention } as unknown as LlamaContext,
    { parallel: 1, chunkSize: 64, chunksAtOnce: 1 },
  )
  return { decoder, sampler: decoder?.createSampler(greedy, []) }
}

test('several chunks in one step leave the same state as one chunk per step, to the last bit', async ({
  skip,
}) => {
  let decoder: Decoder | undefined
  await loadModel(config, { steps: 0 }, (...parts) => {
    decoder = openDecoder(...parts)
    return decoder
  })
  if (!decoder) throw new Error('The internals of node-llama-cpp have changed.')
  const opened = decoder
  const { chunkSize, chunksAtOnce } = opened
  skip(chunksAtOnce === 1, 'the decoder evaluates one chunk per step')
  const prompt = Array.from(
    { length: 5 * chunkSize - 9 },
    (_, index) => (20 + ((index * 7_919) % 300)) as Token,
  )
  const whole = prompt.slice(0, 4 * chunkSize)
  /** Evaluates the prompt in pieces with these ends, and returns the state of its whole chunks. */
  const stateAfter = async (...ends: readonly number[]): Promise<Buffer> => {
    opened.truncate(0, 0)
    for (const [index, end] of ends.entries()) {
      const position = ends[index - 1] ?? 0
      await opened.decode([
        { sequence: 0, position, tokens: prompt.slice(position, end), isDeterministic: false },
      ])
    }
    opened.truncate(0, whole.length)
    const file = join(folder, ends.join('-'))
    await opened.save(0, whole, file)
    return readFile(file)
  }

  const oneByOne = await stateAfter(...[1, 2, 3, 4].map((chunks) => chunks * chunkSize))

  expect(oneByOne.length).toBeGreaterThan(whole.length * 100)
  expect(oneByOne.equals(await stateAfter(chunkSize * 2, chunkSize * 4))).toBe(true)
  expect(oneByOne.equals(await stateAfter(chunkSize, chunkSize * 3, prompt.length))).toBe(true)
})
