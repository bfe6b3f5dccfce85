import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { toDraw, toEvaluateOptions, toSamplerConfig } from './sampling.ts'

const vocabulary = { vocabularySize: 100, contextSize: 1_000 }
const draw = (sampling: Parameters<typeof toDraw>[0]) => toDraw(sampling, vocabulary)
const tokens = (length: number, first = 0) => Array.from({ length }, (_, index) => (first + index) as Token)

test("without options llama.cpp's defaults are taken", () => {
  const { seed: _seed, ...rest } = draw({})

  expect(rest).toEqual({ temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, bias: [] })
})

test('what is given is taken, zeros included', () => {
  const given = { temperature: 0, topK: 0, topP: 0, minP: 0, seed: 0 }

  expect(draw(given)).toEqual({ ...given, bias: [] })
})

test.each([
  [42, 42],
  [-1, 4_294_967_295],
  [4_294_967_296, 0],
  [-9_007_199_254_740_991, 1],
])('the seed %d becomes %d, the 32 bits that the library takes', (seed, expected) => {
  const options = draw({ seed })

  expect(options.seed).toBe(expected)
})

test('without a seed each call gets one of its own', () => {
  const seeds = Array.from({ length: 20 }, () => draw({}).seed)

  expect(new Set(seeds).size).toBeGreaterThan(1)
  for (const seed of seeds) {
    expect(seed).toBeGreaterThanOrEqual(0)
    expect(seed).toBeLessThan(2 ** 32)
    expect(Number.isInteger(seed)).toBe(true)
  }
})

test('only tokens of the vocabulary are biased', () => {
  const logitBias = [
    [-1, 1],
    [0, 2],
    [99, -100],
    [100, 3],
  ] as const

  const config = toSamplerConfig(draw({ logitBias }), [])

  expect(config.tokenBiasKeys).toEqual(Uint32Array.of(0, 99))
  expect(config.tokenBiasValues).toEqual(Float32Array.of(2, -100))
})

test('a bias on nothing but unknown tokens is no bias', () => {
  expect(toSamplerConfig(draw({ logitBias: [[100, 5]] }), [])).not.toHaveProperty('tokenBiasKeys')
})

test.each([
  [{ repeatPenalty: 1.2 }, { repeat: 1.2, presence: 0, frequency: 0, window: 64 }],
  [{ presencePenalty: -0.5 }, { repeat: 1, presence: -0.5, frequency: 0, window: 64 }],
  [
    { frequencyPenalty: 2, repeatLastN: 8 },
    { repeat: 1, presence: 0, frequency: 2, window: 8 },
  ],
  [
    { repeatPenalty: 1.2, repeatLastN: -1 },
    { repeat: 1.2, presence: 0, frequency: 0, window: 1_000 },
  ],
  [
    { repeatPenalty: 1.2, repeatLastN: 2_147_483_647 },
    { repeat: 1.2, presence: 0, frequency: 0, window: 1_000 },
  ],
])('%j alone turns the penalties on', (sampling, expected) => {
  expect(draw(sampling).penalty).toEqual(expected)
})

test.each([
  { repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0 },
  { repeatPenalty: 1.5, repeatLastN: 0 },
])('penalties that change nothing are left off: %j', (sampling) => {
  expect(draw(sampling)).not.toHaveProperty('penalty')
  expect(toSamplerConfig(draw(sampling), [])).not.toHaveProperty('repeatPenaltyTokens')
})

test('what keeps everything is left out for the sampler', () => {
  const config = toSamplerConfig(draw({ temperature: 1, topK: 0, topP: 1, minP: 0, seed: 7 }), [])

  expect(config).toEqual({ temperature: 1, seed: 7 })
})

test('the last tokens of the prompt are punished, and the sampler adds its own', () => {
  const config = toSamplerConfig(draw({ repeatPenalty: 1.1 }), tokens(100))

  expect(config.repeatPenaltyTokens).toEqual(Uint32Array.from(tokens(64, 36)))
  expect(config.repeatPenaltyMaxTokens).toBe(64)
})

test('over the public way they are punished, of the prompt first and then of the answer as it grows', () => {
  const drawn: Token[] = []
  const noBias = () => {
    throw new Error('not asked for')
  }
  const { repeatPenalty } = toEvaluateOptions(draw({ repeatPenalty: 1.1 }), noBias, tokens(100), drawn)
  const punished = (): unknown =>
    typeof repeatPenalty === 'object' && typeof repeatPenalty.punishTokens === 'function'
      ? repeatPenalty.punishTokens()
      : undefined

  const before = punished()
  drawn.push(500 as Token, 501 as Token)
  const after = punished()
  drawn.push(...tokens(70, 600))
  const later = punished()

  expect(before).toEqual(tokens(64, 36))
  expect(after).toEqual([...tokens(62, 38), 500, 501])
  expect(later).toEqual(tokens(64, 606))
})
