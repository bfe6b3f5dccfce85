import type { Token, TokenBias } from 'node-llama-cpp'
import { describe, expect, test } from 'vitest'
import { toEvaluateOptions, toProbeConfig, toSamplerConfig, toSamplingParams } from './sampling.ts'

const vocabulary = { vocabularySize: 100, contextSize: 1_000, getEogTokens: () => [7, 9] }
const draw = (sampling: Parameters<typeof toSamplingParams>[0]) => toSamplingParams(sampling, vocabulary)
const tokens = (length: number, first = 0) => Array.from({ length }, (_, index) => (first + index) as Token)

test("llama.cpp's defaults apply without options", () => {
  const { seed: _seed, ...rest } = draw({})

  expect(rest).toEqual({ temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, bias: [] })
})

test('given options apply, zeros included', () => {
  const given = { temperature: 0, topK: 0, topP: 0, minP: 0, seed: 0 }

  expect(draw(given)).toEqual({ ...given, bias: [] })
})

test.each([
  [42, 42],
  [-1, 4_294_967_294],
  [4_294_967_295, 4_294_967_294],
  [4_294_967_296, 0],
  [-9_007_199_254_740_991, 1],
])('the seed %d becomes %d: it has 32 bits, and the highest number means random', (seed, expected) => {
  const options = draw({ seed })

  expect(options.seed).toBe(expected)
})

test('without a seed, each call gets a random one', () => {
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

test('a bias on unknown tokens is left out', () => {
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
])('penalties that change nothing are left out: %j', (sampling) => {
  expect(draw(sampling)).not.toHaveProperty('penalty')
  expect(toSamplerConfig(draw(sampling), [])).not.toHaveProperty('repeatPenaltyTokens')
})

test('a random seed differs each time', () => {
  const seeds = [draw({ seed: 'random' }), draw({ seed: 'random' }), draw({})].map(({ seed }) => seed)

  expect(new Set(seeds).size).toBe(3)
})

test('options that keep all tokens are left out of the sampler configuration', () => {
  const config = toSamplerConfig(draw({ temperature: 1, topK: 0, topP: 1, minP: 0, seed: 7 }), [])

  expect(config).toEqual({ temperature: 1, seed: 7 })
})

test('the last prompt tokens are penalised, and the sampler adds the tokens that it samples', () => {
  const config = toSamplerConfig(draw({ repeatPenalty: 1.1 }), tokens(100))

  expect(config.repeatPenaltyTokens).toEqual(Uint32Array.from(tokens(64, 36)))
  expect(config.repeatPenaltyMaxTokens).toBe(64)
})

const unused = () => {
  throw new Error('not asked for')
}
const noBias = { tokenBias: unused, textOf: unused }

describe('the DRY penalty', () => {
  test("has llama.cpp's defaults", () => {
    expect(draw({ dry: { strength: 0.8 } }).dry).toEqual({
      ...{ strength: 0.8, base: 1.75, allowedLength: 2, lastN: 1_000 },
      breakers: ['\n', ':', '"', '*'],
    })
  })

  test.each([
    [-1, 1_000],
    [0, 0],
    [50, 50],
    [2_147_483_647, 1_000],
  ])('looking back %d tokens becomes %d: at most the context size', (lastN, expected) => {
    expect(draw({ dry: { strength: 1, lastN, breakers: [] } }).dry).toMatchObject({
      lastN: expected,
      breakers: [],
    })
  })

  test('looks back at most 16,384 tokens, however large the context', () => {
    const large = { ...vocabulary, contextSize: 1_000_000 }

    expect(toSamplingParams({ dry: { strength: 1 } }, large).dry?.lastN).toBe(16_384)
  })

  test('reaches the sampler as a bias, never as an option that searches the vocabulary', () => {
    const config = toSamplerConfig(draw({ dry: { strength: 1 }, logitBias: [[3, 2]] }), [], [], [[5, -4]])

    expect(config.tokenBiasKeys).toEqual(Uint32Array.of(3, 5))
    expect(config.tokenBiasValues).toEqual(Float32Array.of(2, -4))
    expect(Object.keys(config).filter((key) => key.startsWith('dry'))).toEqual([])
  })

  test('reaches the public API as a bias of the output so far', () => {
    const drawn: Token[] = []
    const { tokenBias, ...rest } = toEvaluateOptions(
      draw({ dry: { strength: 1 }, logitBias: [[3, 2]] }),
      { tokenBias: (pairs) => pairs as unknown as TokenBias, textOf: () => '' },
      [],
      drawn,
    )
    const ask = (): unknown => typeof tokenBias === 'function' && tokenBias()

    expect(ask()).toEqual([[3, 2]])
    drawn.push(...([3, 4, 5, 3, 4] as Token[]))
    expect(ask()).toEqual([
      [3, 2],
      [5, -1],
    ])
    expect(rest).not.toHaveProperty('dryRepeatPenalty')
  })

  test('is off without a strength', () => {
    expect(draw({ dry: { strength: 0 } })).not.toHaveProperty('dry')
  })
})

test('XTC reaches the sampler, except at temperature 0 or probability 0', () => {
  const xtc = { probability: 0.5, threshold: 0.1 }

  expect(toSamplerConfig(draw({ xtc }), [])).toMatchObject({ xtcProbability: 0.5, xtcThreshold: 0.1 })
  expect(draw({ xtc, temperature: 0 })).not.toHaveProperty('xtc')
  expect(draw({ xtc: { ...xtc, probability: 0 } })).not.toHaveProperty('xtc')
})

describe('end tokens', () => {
  const biasOf = (sampling: Parameters<typeof toSamplingParams>[0], length: number) => {
    const { tokenBiasKeys = [], tokenBiasValues = [] } = toSamplerConfig(draw(sampling), [], tokens(length))
    return [...tokenBiasKeys].map((token, at) => [token, tokenBiasValues[at]])
  }

  test('are banned until the output is long enough, even with a bias', () => {
    const logitBias = [
      [7, 100],
      [8, 1],
    ] as const
    const sampling = { logitBias, minTokens: 3 }
    const banned = [
      [8, 1],
      [7, -100],
      [9, -100],
    ]

    expect([0, 2, 3].map((length) => biasOf(sampling, length))).toEqual([banned, banned, logitBias])
  })

  test('are always banned if they are ignored', () => {
    const banned = [
      [7, -100],
      [9, -100],
    ]

    expect(biasOf({ ignoreEos: true, minTokens: 3 }, 1_000)).toEqual(banned)
    expect(draw({ ignoreEos: false, minTokens: 0 })).not.toHaveProperty('ban')
  })

  test('are also banned over the public API until the output is long enough', () => {
    const drawn: Token[] = []
    const biases: unknown[] = []
    const bias = (pairs: unknown) => biases.push(pairs) as unknown as TokenBias
    const tools = { tokenBias: bias, textOf: unused }
    const { tokenBias } = toEvaluateOptions(draw({ minTokens: 1 }), tools, [], drawn)

    const ask = (): unknown => typeof tokenBias === 'function' && tokenBias()
    ask()
    drawn.push(1 as Token)
    ask()

    expect(biases).toEqual([
      [
        [7, -100],
        [9, -100],
      ],
      [],
    ])
  })
})

test('a probe applies biases and no other sampling step', () => {
  const shaped = draw({
    ...{ temperature: 0.3, topK: 5, topP: 0.5, minP: 0.2, repeatPenalty: 1.5, minTokens: 9, seed: 1 },
    ...{ dry: { strength: 1 }, xtc: { probability: 1, threshold: 0.1 }, logitBias: [[3, -2]] },
  })
  const bias = { tokenBiasKeys: Uint32Array.of(3), tokenBiasValues: Float32Array.of(-2) }

  expect(toProbeConfig(shaped, 0)).toEqual({ temperature: 0, seed: 1, ...bias })
  expect(toProbeConfig(shaped, 5)).toEqual({ temperature: 1, topK: 5, seed: 1, ...bias })
})

test('the public API penalises tokens of the prompt first, then of the output as it grows', () => {
  const drawn: Token[] = []
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
