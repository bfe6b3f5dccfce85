/** How likely each token was to the model itself, whatever shaped the draw. */
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent, GenerateRequest, PromptToken, SampledToken } from '@modelmount/core/engine'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noiseModel, recurrentModel } from '../support/models.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: [noiseModel, recurrentModel], local: { parallel: 4 } })
  await llm.load('tiny')
})

afterAll(() => llm.close())

type Asked = Partial<GenerateRequest>

const greedy = { temperature: 0 }
/** Every token may be drawn. */
const open = { temperature: 1, topK: 0, topP: 1, minP: 0 }

async function ask(text: string, asked: Asked) {
  const generation = await llm.generate(
    { model: 'tiny', input: { kind: 'text', prompt: [text] }, maxTokens: 40, ...asked },
    { signal: new AbortController().signal },
  )
  const events: GenerateEvent[] = []
  for await (const event of generation) events.push(event)
  const pieces = events.flatMap((event) => (event.type === 'text' ? [event] : []))
  return {
    events,
    text: pieces.map(({ text }) => text).join(''),
    tokens: pieces.flatMap(({ logprobs = [] }) => logprobs),
  }
}

const spelled = (tokens: readonly PromptToken[]): string =>
  Buffer.from(tokens.flatMap(({ bytes }) => bytes)).toString()
const probabilities = ({ top }: SampledToken): number =>
  top.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)

/** A token has the same odds as often as it is asked for, but for rounding. */
function expectAlike(left: readonly SampledToken[], right: readonly SampledToken[], within: number): void {
  expect(left.map(({ id }) => id)).toEqual(right.map(({ id }) => id))
  const distances = left.flatMap(({ logprob, top }, at) => [
    logprob - (right[at]?.logprob ?? 0),
    ...top.flatMap(({ id, logprob }) => {
      const same = right[at]?.top.find((other) => other.id === id)
      return same ? [logprob - same.logprob] : []
    }),
  ])
  expect(Math.max(...distances.map(Math.abs))).toBeLessThanOrEqual(within)
}

test('nobody who does not ask is told', async () => {
  const { events } = await ask('Hello', { sampling: greedy })

  expect(events.filter((event) => 'logprobs' in event)).toEqual([])
})

test('the likeliest token is drawn at temperature 0, and each is told with the text that it made', async () => {
  const { text, tokens, events } = await ask('What is a GGUF file?', { sampling: greedy, logprobs: 5 })

  expect(spelled(tokens)).toBe(text)
  expect(tokens.length).toBeGreaterThan(10)
  for (const event of events)
    if (event.type === 'text') expect(spelled(event.logprobs ?? [])).toBe(event.text)
  for (const token of tokens) {
    const { id, logprob, top } = token
    expect(top).toHaveLength(5)
    expect(top[0]).toMatchObject({ id, logprob })
    expect(top.map(({ logprob }) => logprob)).toEqual(top.map(({ logprob }) => logprob).sort((a, b) => b - a))
    expect(logprob).toBeLessThanOrEqual(0)
    expect(probabilities(token)).toBeLessThanOrEqual(1.0001)
  }
})

test('with none of the likeliest, tokens have the same odds', async () => {
  const [alone, beside] = [
    await ask('Hello', { sampling: greedy, logprobs: 0 }),
    await ask('Hello', { sampling: greedy, logprobs: 20 }),
  ]

  expect(alone.tokens.flatMap(({ top }) => top)).toEqual([])
  expectAlike(alone.tokens, beside.tokens, 1e-4)
})

test('tokens that a bias makes the only ones share all of the probability', async () => {
  const liked = [300, 301, 302, 303, 304]
  const logitBias = liked.map((token) => [token, 100] as const)

  const { tokens } = await ask('Hello', {
    sampling: { ...open, logitBias, seed: 3 },
    logprobs: 5,
    maxTokens: 12,
  })

  expect(tokens).toHaveLength(12)
  expect(new Set(tokens.map(({ id }) => id)).size).toBeGreaterThan(1)
  for (const token of tokens) {
    expect(token.top.map(({ id }) => id).sort()).toEqual(liked)
    expect(probabilities(token)).toBeCloseTo(1, 4)
    expect(token.top).toContainEqual({
      id: token.id,
      text: token.text,
      bytes: token.bytes,
      logprob: token.logprob,
    })
  }
})

test.each<[what: string, sampling: GenerateRequest['sampling']]>([
  ['a temperature', { temperature: 5, seed: 1 }],
  ['truncation', { ...open, topK: 1, topP: 0.1, minP: 0.9 }],
  ['penalties', { ...greedy, repeatPenalty: 5, presencePenalty: 2, repeatLastN: -1 }],
  ['a length', { ...greedy, ignoreEos: true, minTokens: 30 }],
])('the odds are those of the model: %s does not change them', async (_, sampling) => {
  const [plain, shaped] = [
    await ask('Tell me a short story.', { sampling: greedy, logprobs: 20, maxTokens: 1 }),
    await ask('Tell me a short story.', { sampling: sampling ?? {}, logprobs: 20, maxTokens: 1 }),
  ]

  expect(shaped.tokens[0]?.top).toEqual(plain.tokens[0]?.top)
})

test('with a seed they are the same each time, and to tell them changes no answer', async () => {
  const sampling = { ...open, seed: 11 }
  const story = 'Write a short story about Mia.'

  const [first, again, untold] = [
    await ask(story, { sampling, logprobs: 3 }),
    await ask(story, { sampling, logprobs: 3 }),
    await ask(story, { sampling }),
  ]

  expect(again.tokens).toEqual(first.tokens)
  expect(untold.text).toBe(first.text)
})

test('beside other streams they are the same but for rounding, and the others are told none', async () => {
  const question = 'Tell me a short story.'
  const alone = await ask(question, { sampling: greedy, logprobs: 5 })

  const [told, ...others] = await Promise.all([
    ask(question, { sampling: greedy, logprobs: 5 }),
    ...['Hello', 'Who are you?', 'Count from 1 to 9'].map((text) => ask(text, { sampling: greedy })),
  ])

  expectAlike(told.tokens, alone.tokens, 0.02)
  expect(others.flatMap(({ tokens }) => tokens)).toEqual([])
  expect(others[0]?.text).toBe('Hello! How can I help you?')
})

describe('text that is held back', () => {
  test('brings its tokens when it is said', async () => {
    const { text, tokens } = await ask('Hello', {
      sampling: greedy,
      logprobs: 0,
      stop: ['! How can I sing', 'you?!'],
    })

    expect(text).toBe('Hello! How can I help you?')
    expect(spelled(tokens)).toBe(text)
  })

  test('leaves those of a stop sequence out', async () => {
    const { text, tokens } = await ask('Hello', { sampling: greedy, logprobs: 0, stop: [' can I help'] })

    expect(text).toBe('Hello! How')
    expect(spelled(tokens)).toBe(text)
  })
})

/** A piece and its tokens: white space beside markup is nobody's, though it is in a token. */
function expectSpelled(event: GenerateEvent): void {
  if (event.type !== 'text' && event.type !== 'reasoning') return
  const tokens = event.logprobs ?? []
  expect(spelled(tokens).trim()).toBe(event.text.trim())
}

test('thoughts and text have tokens of their own, and the tags between them are in neither', async () => {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is 2 plus 3?' }] }] as const
  const { events } = await ask('', {
    input: { kind: 'chat', messages },
    ...{ reasoning: true, sampling: greedy, logprobs: 0, maxTokens: 100 },
  })

  expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['start', 'reasoning', 'text', 'end']))
  for (const event of events) expectSpelled(event)
})

test('the tokens of a call have none', async () => {
  const messages = [
    { role: 'user', content: [{ type: 'text', text: 'What is the weather in Paris?' }] },
  ] as const
  const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tools = [{ name: 'get_weather', description: 'Get the current weather for a city', parameters: city }]
  const { events } = await ask('', {
    input: { kind: 'chat', messages, tools },
    ...{ sampling: greedy, logprobs: 2, maxTokens: 100 },
  })

  expect(events.some(({ type }) => type === 'tool-call')).toBe(true)
  expect(events.filter((event) => 'logprobs' in event && event.logprobs?.length)).toEqual([])
})

describe('the prompt', () => {
  const signal = new AbortController().signal
  /** Several pieces. */
  const story = Array.from({ length: 40 }, (_, day) => `On day ${day} Mia saw ${3 * day} birds.`).join(' ')

  async function weigh(prompt: string | readonly number[], asked: Asked = {}) {
    const { events } = await ask('', {
      input: { kind: 'text', prompt: [prompt], template: false },
      ...{ logprobs: 3, promptLogprobs: true, maxTokens: 0, ...asked },
    })
    const tokens = events.flatMap((event) => (event.type === 'prompt' ? event.tokens : []))
    return { events, tokens, end: events.at(-1) as GenerateEvent & { type: 'end' } }
  }
  const logprobsOf = (tokens: readonly PromptToken[]) => tokens.map(({ logprob }) => logprob ?? 0)
  const farthest = (left: readonly number[], right: readonly number[]): number => {
    expect(left).toHaveLength(right.length)
    return Math.max(...left.map((one, index) => Math.abs(one - (right[index] ?? 0))))
  }

  test.each(['tiny', 'tiny-llama-spm.f16'])('is told token by token: %s', async (model) => {
    const text = `${story} 🍂 ü`
    const ids = await llm.tokenize({ model, text })

    const { tokens, events, end } = await weigh(text, { model })

    expect(tokens.map(({ id }) => id)).toEqual(ids)
    expect(spelled(tokens)).toBe(text)
    expect(tokens[0]).toMatchObject({ logprob: null, top: [] })
    for (const { logprob, top } of tokens.slice(1)) {
      expect(logprob).toBeLessThanOrEqual(0)
      expect(top).toHaveLength(3)
      expect(logprob).toBeLessThanOrEqual((top[0]?.logprob ?? 0) + 1e-6)
    }
    expect(events.filter(({ type }) => type === 'prompt').length).toBeGreaterThan(3)
    expect(events.map(({ type }) => type).filter((type) => type !== 'prompt')).toEqual(['start', 'end'])
    expect(end).toMatchObject({ finishReason: 'length', usage: { reusedTokens: 0, outputTokens: 0 } })
  })

  test('has the odds that its tokens had when the model drew them', async () => {
    for (const model of ['tiny', 'tiny-llama-spm.f16', 'tiny-mamba.f16']) {
      const drawn = await ask('Write a short story about Mia.', {
        ...{ model, sampling: greedy, logprobs: 3, maxTokens: 90 },
        returnTokens: true,
      })
      const { tokens: all = [], usage } = drawn.events.at(-1) as GenerateEvent & { type: 'end' }

      const { tokens } = await weigh(all, { model })

      const again = tokens.slice(usage.inputTokens, usage.inputTokens + usage.outputTokens)
      expect(again.map(({ id }) => id)).toEqual(drawn.tokens.map(({ id }) => id))
      expect(again.length).toBeGreaterThan(30)
      // Many rows are added up by another kernel than one.
      expect(farthest(logprobsOf(again), logprobsOf(drawn.tokens))).toBeLessThan(0.05)
    }
  })

  test('is the same whatever was read before, and with an answer behind it', async () => {
    const first = await weigh(story)
    const again = await weigh(story)
    const sampling = { ...greedy, ignoreEos: true }
    const answered = await weigh(story, { maxTokens: 5, sampling })
    const seeded = await weigh(story, { maxTokens: 5, sampling: { ...sampling, seed: 3 } })

    for (const { tokens } of [again, answered, seeded]) expect(tokens).toEqual(first.tokens)
    expect(answered.end.usage).toMatchObject({ reusedTokens: 0, outputTokens: 5 })
    expect(answered.events.map(({ type }) => type).indexOf('text')).toBeGreaterThan(
      answered.events.map(({ type }) => type).lastIndexOf('prompt'),
    )
  })

  test('token ids are told as they are given', async () => {
    const model = 'tiny-llama-spm.f16'
    const [bos, ...ids] = await llm.tokenize({ model, text: 'Hello there.', addSpecial: true })

    const without = await weigh(ids, { model })
    const begun = await weigh([bos as number, ...ids], { model })

    expect(without.tokens.map(({ id }) => id)).toEqual(ids)
    expect(begun.tokens.map(({ id }) => id)).toEqual([bos, ...ids])
    // The model begins with it anyway.
    expect(logprobsOf(begun.tokens).slice(2)).toEqual(logprobsOf(without.tokens).slice(1))
  })

  test('biases count, and who leaves hears no end', async () => {
    const [, second = 0] = await llm.tokenize({ model: 'tiny', text: 'Hello there' })
    const biased = await weigh('Hello there', { sampling: { logitBias: [[second, 100]] } })
    const leaving = new AbortController()
    const generation = await llm.generate(
      {
        model: 'tiny',
        input: { kind: 'text', prompt: [story.repeat(3)], template: false },
        ...({ logprobs: 0, promptLogprobs: true, maxTokens: 0 } as const),
      },
      { signal: leaving.signal },
    )
    const types: string[] = []
    for await (const { type } of generation) {
      types.push(type)
      leaving.abort()
    }

    expect(biased.tokens[1]?.logprob).toBeCloseTo(0, 4)
    expect(types).not.toContain('end')
  })

  test('is read beside answers that run, which are the same as alone', async () => {
    const question = 'Count from 1 to 9'
    const alone = await ask(question, { sampling: { ...greedy, seed: 1 } })

    const [{ tokens }, beside] = await Promise.all([
      weigh(story),
      ask(question, { sampling: { ...greedy, seed: 1 } }),
    ])

    expect(beside.text).toBe(alone.text)
    expect(tokens.length).toBeGreaterThan(300)
  })

  test('logprobs have to be asked for with it', async () => {
    const asked = llm.generate(
      { model: 'tiny', input: { kind: 'text', prompt: ['Hello'] }, promptLogprobs: true },
      { signal },
    )

    await expect(asked).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'promptLogprobs' },
    })
  })
})

describe('tokens that end an answer', () => {
  test('do not where they are to be ignored', async () => {
    const { events, tokens } = await ask('Hello', { sampling: { ...greedy, ignoreEos: true }, logprobs: 0 })

    expect(events.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 40 } })
    expect(tokens).toHaveLength(40)
  })

  test('do not before an answer is long enough, and do then', async () => {
    const { events } = await ask('Hello', { sampling: { ...greedy, minTokens: 15 }, maxTokens: 400 })

    const { outputTokens } = (events.at(-1) as GenerateEvent & { type: 'end' }).usage
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(outputTokens).toBeGreaterThanOrEqual(15)
  })
})

test('of the tokens from a threshold up only the least likely stays, where the likeliest are left out', async () => {
  const threshold = 0.05
  const { tokens } = await ask('Write a short story about Mia.', {
    sampling: { ...open, seed: 5, xtc: { probability: 1, threshold } },
    logprobs: 20,
  })

  const choices = tokens.map(({ logprob, top }) => ({
    logprob,
    likely: top.filter(({ logprob }) => logprob > Math.log(threshold) + 1e-3),
  }))
  expect(choices.filter(({ likely }) => likely.length > 1).length).toBeGreaterThan(3)
  for (const { logprob, likely } of choices)
    if (likely.length > 1) expect(logprob).toBeLessThanOrEqual((likely.at(-1)?.logprob ?? 0) + 1e-6)
})

test('a punished repetition ends', async () => {
  const long = { ignoreEos: true, ...greedy }
  const question = 'Hello'

  const [plain, punished] = [
    await ask(question, { sampling: long, maxTokens: 120 }),
    await ask(question, { sampling: { ...long, dry: { strength: 5, breakers: [] } }, maxTokens: 120 }),
  ]

  expect(longestRepeat(punished.text)).toBeLessThan(longestRepeat(plain.text))
})

/** Of the pieces of a text that are in it twice, the longest. */
function longestRepeat(text: string): number {
  let longest = 0
  for (let at = 0; at < text.length; at++)
    while (text.indexOf(text.slice(at, at + longest + 1), at + 1) > at && at + longest < text.length)
      longest++
  return longest
}
