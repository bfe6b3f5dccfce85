import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import type { Binding } from './binding.ts'
import { toEvaluateOptions } from './sampling.ts'

type Bias = ReturnType<Binding['bias']>

/** Shows the pairs that it was given. */
const model = {
  vocabularySize: 100,
  contextSize: 1_000,
  bias: (pairs: readonly (readonly [number, number])[]) => ({ pairs }) as unknown as Bias,
}

test("without options llama.cpp's defaults are taken", () => {
  const { seed: _seed, ...options } = toEvaluateOptions(model, undefined, [], [])

  expect(options).toEqual({ temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 })
})

test('what is given is taken, zeros included', () => {
  const options = toEvaluateOptions(model, { temperature: 0, topK: 0, topP: 0, minP: 0, seed: 0 }, [], [])

  expect(options).toEqual({ temperature: 0, topK: 0, topP: 0, minP: 0, seed: 0 })
})

test.each([
  [42, 42],
  [-1, 4_294_967_295],
  [4_294_967_296, 0],
  [-9_007_199_254_740_991, 1],
])('the seed %d becomes %d, the 32 bits that the library takes', (seed, expected) => {
  const options = toEvaluateOptions(model, { seed }, [], [])

  expect(options.seed).toBe(expected)
})

test('without a seed each call gets one of its own', () => {
  const seeds = Array.from({ length: 20 }, () => toEvaluateOptions(model, {}, [], []).seed)

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

  const { tokenBias } = toEvaluateOptions(model, { logitBias }, [], [])

  expect(tokenBias).toEqual({
    pairs: [
      [0, 2],
      [99, -100],
    ],
  })
})

test('a bias on nothing but unknown tokens is no bias', () => {
  const options = toEvaluateOptions(model, { logitBias: [[100, 5]] }, [], [])

  expect(options).not.toHaveProperty('tokenBias')
})

test.each([
  [{ repeatPenalty: 1.2 }, { penalty: 1.2, presencePenalty: 0, frequencyPenalty: 0 }],
  [{ presencePenalty: -0.5 }, { penalty: 1, presencePenalty: -0.5, frequencyPenalty: 0 }],
  [{ frequencyPenalty: 2 }, { penalty: 1, presencePenalty: 0, frequencyPenalty: 2 }],
])('%j alone turns the penalties on', (sampling, expected) => {
  const { repeatPenalty } = toEvaluateOptions(model, sampling, [], [])

  expect(repeatPenalty).toMatchObject({ ...expected, maxPunishTokens: 64 })
})

test('penalties that change nothing are left off', () => {
  const options = toEvaluateOptions(
    model,
    { repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0 },
    [],
    [],
  )

  expect(options).not.toHaveProperty('repeatPenalty')
})

/** The tokens that are punished next. */
function punishedBy({ repeatPenalty }: ReturnType<typeof toEvaluateOptions>): unknown {
  return typeof repeatPenalty === 'object' && typeof repeatPenalty.punishTokens === 'function'
    ? repeatPenalty.punishTokens()
    : undefined
}

test.each([
  [1, [501]],
  [3, [2, 500, 501]],
  [4, [1, 2, 500, 501]],
  [1_000, [0, 1, 2, 500, 501]],
  [-1, [0, 1, 2, 500, 501]],
])('with repeatLastN %i, %j are punished', (repeatLastN, expected) => {
  const options = toEvaluateOptions(
    model,
    { repeatPenalty: 1.1, repeatLastN },
    [0, 1, 2] as Token[],
    [500, 501] as Token[],
  )

  expect(options.repeatPenalty).toMatchObject({
    maxPunishTokens: repeatLastN === -1 ? model.contextSize : repeatLastN,
  })
  expect(punishedBy(options)).toEqual(expected)
})

test('a repeatLastN of 0 turns all penalties off', () => {
  const sampling = { repeatPenalty: 1.1, presencePenalty: 1, frequencyPenalty: 1, repeatLastN: 0 }

  expect(toEvaluateOptions(model, sampling, [], [])).not.toHaveProperty('repeatPenalty')
})

test('the last 64 tokens are punished, of the prompt first and then of the answer as it grows', () => {
  const prompt = Array.from({ length: 100 }, (_, index) => index as Token)
  const drawn: Token[] = []
  const options = toEvaluateOptions(model, { repeatPenalty: 1.1 }, prompt, drawn)
  const punished = (): unknown => punishedBy(options)

  const before = punished()
  drawn.push(500 as Token, 501 as Token)
  const after = punished()
  drawn.push(...Array.from({ length: 70 }, (_, index) => (600 + index) as Token))
  const later = punished()

  expect(before).toEqual(Array.from({ length: 64 }, (_, index) => 36 + index))
  expect(after).toEqual([...Array.from({ length: 62 }, (_, index) => 38 + index), 500, 501])
  expect(later).toEqual(Array.from({ length: 64 }, (_, index) => 606 + index))
})
