/** Log probabilities are those of the model, independent of sampling options other than a bias. */
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

type AskOptions = Partial<GenerateRequest>

const greedy = { temperature: 0 }
/** Any token can be sampled. */
const open = { temperature: 1, topK: 0, topP: 1, minP: 0 }

async function ask(text: string, asked: AskOptions) {
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

/** Expects the same tokens, with log probabilities that differ by at most `within`. */
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

test('without logprobs in the request, no event has log probabilities', async () => {
  const { events } = await ask('Hello', { sampling: greedy })

  expect(events.filter((event) => 'logprobs' in event)).toEqual([])
})

test('at temperature 0 the likeliest token is sampled, and each event has the tokens of its text', async () => {
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

test('with logprobs 0, tokens have the same log probabilities as with logprobs 20', async () => {
  const [alone, beside] = [
    await ask('Hello', { sampling: greedy, logprobs: 0 }),
    await ask('Hello', { sampling: greedy, logprobs: 20 }),
  ]

  expect(alone.tokens.flatMap(({ top }) => top)).toEqual([])
  expectAlike(alone.tokens, beside.tokens, 1e-4)
})

test('tokens that a bias makes the only candidates have a total probability of 1', async () => {
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
  ['a penalty', { ...greedy, repeatPenalty: 5, presencePenalty: 2, repeatLastN: -1 }],
  ['a minimum length', { ...greedy, ignoreEos: true, minTokens: 30 }],
])('%s does not change the log probabilities', async (_, sampling) => {
  const [plain, shaped] = [
    await ask('Tell me a short story.', { sampling: greedy, logprobs: 20, maxTokens: 1 }),
    await ask('Tell me a short story.', { sampling: sampling ?? {}, logprobs: 20, maxTokens: 1 }),
  ]

  expect(shaped.tokens[0]?.top).toEqual(plain.tokens[0]?.top)
})

test('with a seed, log probabilities repeat exactly, and requesting them changes no answer', async () => {
  const sampling = { ...open, seed: 11 }
  const story = 'Write a short story about Mia.'

  const [first, again, without] = [
    await ask(story, { sampling, logprobs: 3 }),
    await ask(story, { sampling, logprobs: 3 }),
    await ask(story, { sampling }),
  ]

  expect(again.tokens).toEqual(first.tokens)
  expect(without.text).toBe(first.text)
})

test('beside other streams, log probabilities differ only by rounding, and the other streams get none', async () => {
  const question = 'Tell me a short story.'
  const alone = await ask(question, { sampling: greedy, logprobs: 5 })

  const [answer, ...others] = await Promise.all([
    ask(question, { sampling: greedy, logprobs: 5 }),
    ...['Hello', 'Who are you?', 'Count from 1 to 9'].map((text) => ask(text, { sampling: greedy })),
  ])

  expectAlike(answer.tokens, alone.tokens, 0.02)
  expect(others.flatMap(({ tokens }) => tokens)).toEqual([])
  expect(others[0]?.text).toBe('Hello! How can I help you?')
})

describe('log probabilities of text that may begin a stop sequence', () => {
  test('are sent with the text', async () => {
    const { text, tokens } = await ask('Hello', {
      sampling: greedy,
      logprobs: 0,
      stop: ['! How can I sing', 'you?!'],
    })

    expect(text).toBe('Hello! How can I help you?')
    expect(spelled(tokens)).toBe(text)
  })

  test('leave out the tokens of the stop sequence itself', async () => {
    const { text, tokens } = await ask('Hello', { sampling: greedy, logprobs: 0, stop: [' can I help'] })

    expect(text).toBe('Hello! How')
    expect(spelled(tokens)).toBe(text)
  })
})

/** Expects the tokens of an event to spell its text. Only the tokens contain white space beside markup. */
function expectSpelled(event: GenerateEvent): void {
  if (event.type !== 'text' && event.type !== 'reasoning') return
  const tokens = event.logprobs ?? []
  expect(spelled(tokens).trim()).toBe(event.text.trim())
}

test('reasoning and text each have their own tokens, and neither includes the tags between them', async () => {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is 2 plus 3?' }] }] as const
  const { events } = await ask('', {
    input: { kind: 'chat', messages },
    ...{ reasoning: true, sampling: greedy, logprobs: 0, maxTokens: 100 },
  })

  expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['start', 'reasoning', 'text', 'end']))
  for (const event of events) expectSpelled(event)
})

test('events of a tool call have no log probabilities', async () => {
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

describe('log probabilities of the prompt', () => {
  const signal = new AbortController().signal
  /** Long enough for several `prompt` events. */
  const story = Array.from({ length: 40 }, (_, day) => `On day ${day} Mia saw ${3 * day} birds.`).join(' ')

  async function evaluate(prompt: string | readonly number[], asked: AskOptions = {}) {
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

  test.each(['tiny', 'tiny-llama-spm.f16'])('are given for each token by the model %s', async (model) => {
    const text = `${story} 🍂 ü`
    const ids = await llm.tokenize({ model, text })

    const { tokens, events, end } = await evaluate(text, { model })

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

  test('equal those of the same tokens when the model sampled them', async () => {
    for (const model of ['tiny', 'tiny-llama-spm.f16', 'tiny-mamba.f16']) {
      const drawn = await ask('Write a short story about Mia.', {
        ...{ model, sampling: greedy, logprobs: 3, maxTokens: 90 },
        returnTokens: true,
      })
      const { tokens: all = [], usage } = drawn.events.at(-1) as GenerateEvent & { type: 'end' }

      const { tokens } = await evaluate(all, { model })

      const again = tokens.slice(usage.inputTokens, usage.inputTokens + usage.outputTokens)
      expect(again.map(({ id }) => id)).toEqual(drawn.tokens.map(({ id }) => id))
      expect(again.length).toBeGreaterThan(30)
      // llama.cpp uses another kernel for many rows than for one row.
      expect(farthest(logprobsOf(again), logprobsOf(drawn.tokens))).toBeLessThan(0.05)
    }
  })

  test('do not depend on earlier calls or on a following answer', async () => {
    const first = await evaluate(story)
    const again = await evaluate(story)
    const sampling = { ...greedy, ignoreEos: true }
    const answered = await evaluate(story, { maxTokens: 5, sampling })
    const seeded = await evaluate(story, { maxTokens: 5, sampling: { ...sampling, seed: 3 } })

    for (const { tokens } of [again, answered, seeded]) expect(tokens).toEqual(first.tokens)
    expect(answered.end.usage).toMatchObject({ reusedTokens: 0, outputTokens: 5 })
    expect(answered.events.map(({ type }) => type).indexOf('text')).toBeGreaterThan(
      answered.events.map(({ type }) => type).lastIndexOf('prompt'),
    )
  })

  test('are given for exactly the token ids of the request', async () => {
    const model = 'tiny-llama-spm.f16'
    const [bos, ...ids] = await llm.tokenize({ model, text: 'Hello there.', addSpecial: true })

    const without = await evaluate(ids, { model })
    const begun = await evaluate([bos as number, ...ids], { model })

    expect(without.tokens.map(({ id }) => id)).toEqual(ids)
    expect(begun.tokens.map(({ id }) => id)).toEqual([bos, ...ids])
    // Without a BOS token in the request, the model evaluates one anyway.
    expect(logprobsOf(begun.tokens).slice(2)).toEqual(logprobsOf(without.tokens).slice(1))
  })

  test('reflect logit biases, and an aborted call gets no end event', async () => {
    const [, second = 0] = await llm.tokenize({ model: 'tiny', text: 'Hello there' })
    const biased = await evaluate('Hello there', { sampling: { logitBias: [[second, 100]] } })
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

  test('are computed beside a running answer without changing it', async () => {
    const question = 'Count from 1 to 9'
    const alone = await ask(question, { sampling: { ...greedy, seed: 1 } })

    const [{ tokens }, beside] = await Promise.all([
      evaluate(story),
      ask(question, { sampling: { ...greedy, seed: 1 } }),
    ])

    expect(beside.text).toBe(alone.text)
    expect(tokens.length).toBeGreaterThan(300)
  })

  test('require logprobs in the request', async () => {
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

describe('end-of-sequence tokens', () => {
  test('do not end an answer with ignoreEos', async () => {
    const { events, tokens } = await ask('Hello', { sampling: { ...greedy, ignoreEos: true }, logprobs: 0 })

    expect(events.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 40 } })
    expect(tokens).toHaveLength(40)
  })

  test('end an answer only after minTokens', async () => {
    const { events } = await ask('Hello', { sampling: { ...greedy, minTokens: 15 }, maxTokens: 400 })

    const { outputTokens } = (events.at(-1) as GenerateEvent & { type: 'end' }).usage
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
    expect(outputTokens).toBeGreaterThanOrEqual(15)
  })
})

test('XTC leaves only the least likely of the tokens above its threshold', async () => {
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

test('DRY shortens repetitions', async () => {
  const long = { ignoreEos: true, ...greedy }
  const question = 'Hello'

  const [plain, punished] = [
    await ask(question, { sampling: long, maxTokens: 120 }),
    await ask(question, { sampling: { ...long, dry: { strength: 5, breakers: [] } }, maxTokens: 120 }),
  ]

  expect(longestRepeat(punished.text)).toBeLessThan(longestRepeat(plain.text))
})

/** Length of the longest substring that occurs twice. */
function longestRepeat(text: string): number {
  let longest = 0
  for (let at = 0; at < text.length; at++)
    while (text.indexOf(text.slice(at, at + longest + 1), at + 1) > at && at + longest < text.length)
      longest++
  return longest
}
