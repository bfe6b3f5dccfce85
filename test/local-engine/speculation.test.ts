/** Answers of the built-in model with and without guesses, from one decoder. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { GenerateEvent } from '../../packages/core/src/engine/events.ts'
import type { Decoder } from '../../packages/core/src/engine/local/model-process/decoding/decoder.ts'
import { Scheduler } from '../../packages/core/src/engine/local/model-process/decoding/scheduler.ts'
import { openDecoder } from '../../packages/core/src/engine/local/model-process/llama/addon-decoder.ts'
import { loadModel } from '../../packages/core/src/engine/local/model-process/llama/load.ts'
import type { RuntimeModel } from '../../packages/core/src/engine/local/model-process/model.ts'
import type { GenerateRequest } from '../../packages/core/src/engine/request.ts'
import { ask, config, textOf } from '../support/bindings.ts'

let guessing: RuntimeModel
let plain: RuntimeModel
/** Guesses of all steps. */
let guessed = 0

beforeAll(async () => {
  let decoder: Decoder | undefined
  const loaded = await loadModel({ ...config, contextSize: 2048 }, { steps: 0 }, (...parts) => {
    decoder = openDecoder(...parts)
    return decoder
  })
  if (!decoder) throw new Error('The internals of node-llama-cpp have changed.')
  const decode = decoder.decode.bind(decoder)
  // Guesses depend on the duration of steps, which would depend on the load of the machine.
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  decoder.decode = (entries) => {
    const count = entries.reduce((sum, { guesses = [] }) => sum + guesses.length, 0)
    guessed += count
    now += 1 + count / 10
    return decode(entries)
  }
  guessing = { ...loaded, runner: new Scheduler(decoder, { steps: 0 }) }
  plain = { ...loaded, runner: new Scheduler(decoder, { steps: 0 }, undefined, false) }
})

afterAll(() => vi.restoreAllMocks())

const sentence = 'Repeat the following sentence. "The quick brown fox jumps over the lazy dog"'
const chat = (text: string): GenerateRequest['input'] => ({
  kind: 'chat',
  messages: [{ role: 'user', content: [{ type: 'text', text }] }],
})

/** The events of an answer, without durations. */
async function answer(model: RuntimeModel, more: Partial<GenerateRequest>): Promise<GenerateEvent[]> {
  const events = await ask(model, '', undefined, { maxTokens: 200, ...more })
  // An answer may end while a step runs, and both runners use one decoder.
  await model.runner.whenIdle()
  return events.map((event) =>
    event.type === 'end' ? { ...event, timings: { loadMs: 0 } } : event,
  ) as GenerateEvent[]
}

const withoutStart = (events: readonly GenerateEvent[]) => events.filter(({ type }) => type !== 'start')

test.each<[what: string, more: Partial<GenerateRequest>]>([
  ['a repeated sentence', { input: chat(sentence) }],
  ['its tokens', { input: chat(sentence), returnTokens: true }],
  ['up to a stop sequence', { input: chat(sentence), stop: ['jumps over'] }],
  ['up to the maximum', { input: chat(sentence), maxTokens: 21 }],
  ['with penalties', { input: chat(sentence), sampling: { temperature: 0, repeatPenalty: 1.1 } }],
  ['a story', { input: chat('Tell me a short story about Ada.') }],
])('a greedy answer is the same with guesses: %s', async (_, more) => {
  const before = guessed
  const usual = withoutStart(await answer(plain, more))
  expect(guessed).toBe(before)

  // The first answers teach the planner what steps cost.
  for (let time = 0; time < 3; time++) {
    const events = withoutStart(await answer(guessing, more))
    expect(textOf(events)).toBe(textOf(usual))
    expect(events.at(-1)).toMatchObject({ usage: { outputTokens: outputTokensOf(usual) } })
  }
  expect(textOf(usual)).not.toBe('')
})

test('guesses were verified', async () => {
  guessed = 0
  for (let time = 0; time < 3; time++) await answer(guessing, { input: chat(sentence) })
  expect(guessed).toBeGreaterThan(0)
})

test('each token of a step with guesses has its own logprobs', async () => {
  const more = { input: chat(sentence), logprobs: 2 }
  const tokensOf = (events: readonly GenerateEvent[]) =>
    events.flatMap((event) => (event.type === 'text' ? (event.logprobs ?? []) : []))
  const usual = tokensOf(await answer(plain, more))
  await answer(guessing, more)
  guessed = 0

  const tokens = tokensOf(await answer(guessing, more))

  expect(guessed).toBeGreaterThan(0)
  expect(tokens.map(({ id }) => id)).toEqual(usual.map(({ id }) => id))
  for (const [index, { logprob, top }] of tokens.entries()) {
    expect(logprob).toBeCloseTo(usual[index]?.logprob ?? Number.NaN, 1)
    expect(top).toHaveLength(2)
  }
})

test('an answer with a seed gets no guesses', async () => {
  guessed = 0
  const sampling = { temperature: 0, seed: 7 }

  for (let time = 0; time < 2; time++) await answer(guessing, { input: chat(sentence), sampling })

  expect(guessed).toBe(0)
})

const outputTokensOf = (events: readonly GenerateEvent[]): number => {
  const last = events.at(-1)
  return last?.type === 'end' ? last.usage.outputTokens : Number.NaN
}
