import type { Token } from 'node-llama-cpp'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type FakeDecoder,
  type FakeDecoderOptions,
  fakeDecoder,
  job,
  prompt,
} from '../../../../../../../test/support/fake-decoder.ts'
import { Scheduler } from '../decoding/scheduler.ts'
import type { GenerationJob } from '../runner.ts'

let now = 0
beforeEach(() => {
  now = 10_000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => vi.restoreAllMocks())

const passage = prompt(40, 100)
const endToken = 999 as Token
/** The output repeats the prompt. */
const copying = (index: number): Token => passage[index % passage.length] as Token
/** The output repeats the prompt, except for one token. */
const differingAt = (different: number, token: Token | Error) => (index: number) =>
  index === different ? token : copying(index)

/** A decoder whose steps take 10 ms, and 2 ms more for each guess. */
function createDecoder(options: FakeDecoderOptions = {}) {
  const truncations: (readonly [sequence: number, keep: number])[] = []
  const decoder = fakeDecoder({ chunkSize: 16, outputAt: copying, ...options })
  const { decode, truncate } = decoder
  decoder.decode = (entries) => {
    now += 10 + 2 * entries.reduce((sum, { guesses = [] }) => sum + guesses.length, 0)
    return decode(entries)
  }
  decoder.truncate = (sequence, keep) => {
    truncations.push([sequence, keep])
    return truncate(sequence, keep)
  }
  return { decoder, truncations }
}

const expected = (count: number): Token[] => Array.from({ length: count }, (_, index) => copying(index))

/** Numbers of rows of the steps after the prompt. */
const decodeRows = ({ steps }: FakeDecoder): readonly number[] =>
  steps.filter(([[, position] = [0, 0, 0]]) => position >= passage.length).map(([entry]) => entry?.[2] ?? 0)

const copy = (more: Partial<GenerationJob> = {}) => job(passage, { maxTokens: 60, ...more })

test('a copied passage takes few steps, and its tokens arrive in order with their logprobs', async () => {
  const { decoder, truncations } = createDecoder()
  const received: unknown[] = []
  const one = copy({
    onToken: (token, logprobs) => {
      received.push([token, logprobs?.logprob])
      return true
    },
  })

  expect(await new Scheduler(decoder, { steps: 0 }).run(one)).toBe('limit')

  expect(received).toEqual(expected(60).map((token) => [token, -token]))
  expect(decodeRows(decoder).length).toBeLessThan(25)
  expect(Math.max(...decodeRows(decoder))).toBe(16)
  // No guess was wrong.
  expect(truncations.filter(([, keep]) => keep > 0)).toEqual([])
  expect(decoder.samplers).toBe(0)
})

test('after a wrong guess, the state is cut behind the right ones', async () => {
  const { decoder, truncations } = createDecoder({ outputAt: differingAt(30, 500 as Token) })
  const one = copy()

  expect(await new Scheduler(decoder, { steps: 0 }).run(one)).toBe('limit')

  const output = expected(60)
  output[30] = 500 as Token
  expect(one.tokens).toEqual(output)
  // The prompt, and the output before the different token.
  expect(truncations.filter(([, keep]) => keep > 0)).toEqual([[0, passage.length + 30]])
})

test('a loop in the output is guessed, too', async () => {
  const { decoder } = createDecoder({ outputAt: (index) => ((index % 3) + 700) as Token })
  const one = job(prompt(20), { maxTokens: 60 })

  await new Scheduler(decoder, { steps: 0 }).run(one)

  expect(one.tokens).toEqual(Array.from({ length: 60 }, (_, index) => 700 + (index % 3)))
  expect(decoder.steps.length).toBeLessThan(35)
})

describe('an output ends inside its guesses', () => {
  test('at an end token', async () => {
    const { decoder } = createDecoder({ outputAt: differingAt(30, endToken) })
    const one = copy()

    expect(await new Scheduler(decoder, { steps: 0 }).run(one)).toBe('end')

    expect(one.tokens).toEqual(expected(30))
  })

  test('at an end token that occurs in the prompt, which is never a guess', async () => {
    const withEnd = [...passage.slice(0, 30), endToken, ...passage.slice(30)]
    const { decoder } = createDecoder({ outputAt: (index) => withEnd[index] as Token })
    const one = job(withEnd, { maxTokens: 60 })

    expect(await new Scheduler(decoder, { steps: 0 }).run(one)).toBe('end')

    expect(one.tokens).toEqual(expected(30))
    expect(decoder.steps.at(-1)?.[0]?.[1]).toBeLessThanOrEqual(withEnd.length + 30)
  })

  test('at a stop sequence: no later token is emitted', async () => {
    const { decoder } = createDecoder()
    const emitted: Token[] = []
    const all = new Scheduler(decoder, { steps: 0 })

    expect(await all.run(copy({ onToken: (token) => emitted.push(token) < 27 }))).toBe('stopped')
    await all.whenIdle()

    expect(emitted).toEqual(expected(27))
    expect(decoder.samplers).toBe(0)
  })

  test.each([17, 26, 27, 28])('at the maximum of %i tokens', async (maxTokens) => {
    const { decoder } = createDecoder()
    const one = copy({ maxTokens })

    expect(await new Scheduler(decoder, { steps: 0 }).run(one)).toBe('limit')

    expect(one.tokens).toEqual(expected(maxTokens))
    for (const [sequence, position, rows] of decoder.steps.flat())
      expect([sequence, position + rows <= passage.length + maxTokens]).toEqual([0, true])
  })

  test('when a token cannot be sampled: the tokens before it are emitted', async () => {
    const { decoder, truncations } = createDecoder({ outputAt: differingAt(30, new Error('none fits')) })
    const one = copy()
    const all = new Scheduler(decoder, { steps: 0 })

    await expect(all.run(one)).rejects.toMatchObject({ code: 'upstream' })
    await all.whenIdle()

    expect(one.tokens).toEqual(expected(30))
    expect(truncations.filter(([, keep]) => keep > 0)).toHaveLength(1)
    expect(decoder.samplers).toBe(0)
  })

  test('when the caller aborts: no later token is emitted', async () => {
    const { decoder } = createDecoder()
    const controller = new AbortController()
    const emitted: Token[] = []
    const all = new Scheduler(decoder, { steps: 0 })
    const onToken = (token: Token): boolean => {
      if (emitted.push(token) === 27) controller.abort()
      return true
    }

    expect(await all.run(copy({ onToken, signal: controller.signal }))).toBe('aborted')
    await all.whenIdle()

    expect(emitted.length).toBeLessThan(60)
    expect(decoder.samplers).toBe(0)
  })
})

test('the next turn reuses the state of a copied answer', async () => {
  const { decoder } = createDecoder({ outputAt: differingAt(30, 500 as Token) })
  const all = new Scheduler(decoder, { steps: 0 })
  const one = copy()
  await all.run(one)
  const next = job([...passage, ...one.tokens, 1 as Token], { maxTokens: 1 })

  await all.run(next)

  // The last token was sampled, but not evaluated.
  expect(next.reused).toBe(passage.length + 59)
})

test('an output pauses while its client reads slowly, after the step that filled the buffer', async () => {
  const { decoder } = createDecoder()
  const emitted: Token[] = []
  const all = new Scheduler(decoder, { steps: 0 })
  let [isFull, isRead] = [false, false]
  const run = all.run(
    copy({
      isBackpressured: () => isFull,
      onToken: (token) => {
        isFull = emitted.push(token) >= 27 && !isRead
        return true
      },
    }),
  )

  await vi.waitFor(() => expect(all.isDecoding).toBe(false))
  expect(emitted.length).toBeLessThan(60)
  ;[isFull, isRead] = [false, true]
  all.wake()

  expect(await run).toBe('limit')
  expect(emitted).toEqual(expected(60))
})

describe('nothing is guessed', () => {
  const isOneByOne = (decoder: FakeDecoder): boolean => decodeRows(decoder).every((rows) => rows === 1)

  test.each<[why: string, more: Partial<GenerationJob>, options: FakeDecoderOptions, speculates: boolean]>([
    ['for a deterministic output', { isDeterministic: true }, {}, true],
    ['if the model cannot truncate', {}, { canTruncate: false }, true],
    ['if it is switched off', {}, {}, false],
  ])('%s', async (_, more, options, speculates) => {
    const { decoder } = createDecoder(options)
    const one = copy(more)

    await new Scheduler(decoder, { steps: 0 }, undefined, speculates).run(one)

    expect(one.tokens).toEqual(expected(60))
    expect(isOneByOne(decoder)).toBe(true)
  })

  test('while several sequences decode', async () => {
    const { decoder } = createDecoder()
    const all = new Scheduler(decoder, { steps: 0 })

    await Promise.all([all.run(copy()), all.run(copy({ tenant: 'bob' }))])

    expect(isOneByOne(decoder)).toBe(true)
  })
})

test('if wrong guesses cannot be removed, the output fails and its slot is empty', async () => {
  const { decoder } = createDecoder({ outputAt: differingAt(30, 500 as Token) })
  const { truncate } = decoder
  decoder.truncate = (sequence, keep) => truncate(sequence, keep) && keep === 0
  const all = new Scheduler(decoder, { steps: 0 })

  await expect(all.run(copy())).rejects.toMatchObject({ code: 'upstream' })
  const next = copy({ maxTokens: 1 })
  await all.run(next)

  expect(next.reused).toBe(0)
})
