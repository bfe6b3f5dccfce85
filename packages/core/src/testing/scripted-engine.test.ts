import { expect, test } from 'vitest'
import { type GenerateEvent, uncached } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import { type Script, scriptedEngine } from './scripted-engine.ts'

const request: GenerateRequest = {
  model: 'any',
  input: {
    kind: 'chat',
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    ],
  },
}
const live = (): { signal: AbortSignal } => ({ signal: new AbortController().signal })

async function all(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const read: GenerateEvent[] = []
  for await (const event of events) read.push(event)
  return read
}
const textsOf = (events: readonly GenerateEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'text' ? [event.text] : []))

test('a text is streamed word by word, between a start and an end', async () => {
  const engine = scriptedEngine('Hello there.')

  const events = await all(engine.generate(request, live()))

  expect(events).toEqual([
    { type: 'start', model: 'any', inputTokens: 2, reusedTokens: 0, ...uncached, fingerprint: 'fp_scripted' },
    { type: 'text', text: 'Hello', tokens: 1 },
    { type: 'text', text: ' there.', tokens: 1 },
    {
      type: 'end',
      finishReason: 'stop',
      usage: { inputTokens: 2, reusedTokens: 0, ...uncached, outputTokens: 2 },
      timings: { loadMs: 0, promptMs: 0, generateMs: expect.any(Number) },
    },
  ])
})

test.each(['  leading', 'trailing \n', 'a\n\nb\tc', ' ', ''])(
  'the joined words of %j are the text',
  async (text) => {
    const engine = scriptedEngine(text)

    const events = await all(engine.generate(request, live()))

    expect(textsOf(events).join('')).toBe(text)
  },
)

test('a list is streamed chunk by chunk', async () => {
  const engine = scriptedEngine(['Hel', 'lo', ''])

  const events = await all(engine.generate(request, live()))

  expect(textsOf(events)).toEqual(['Hel', 'lo', ''])
})

test('a function answers each request', async () => {
  const engine = scriptedEngine(({ model }) => [model, '!'])

  const events = await all(engine.generate({ ...request, model: 'tiny' }, live()))

  expect(textsOf(events)).toEqual(['tiny', '!'])
})

test('maxTokens cuts the answer, and its finish reason is `length`', async () => {
  const engine = scriptedEngine('one two three')

  const events = await all(engine.generate({ ...request, maxTokens: 2 }, live()))

  expect(textsOf(events)).toEqual(['one', ' two'])
  expect(events.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 2 } })
})

test('an answer of exactly maxTokens is complete', async () => {
  const engine = scriptedEngine('one two')

  const events = await all(engine.generate({ ...request, maxTokens: 2 }, live()))

  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', usage: { outputTokens: 2 } })
})

test('reasoning, text and calls are streamed in order, the arguments of a call in pieces', async () => {
  const engine = scriptedEngine([
    { reasoning: 'Hm.' },
    'Wait',
    { call: 'weather', arguments: { city: 'Paris' } },
    { call: 'time', id: 'call_x', arguments: ['{"zone":', '"CET"}'] },
    { call: 'now' },
  ])

  const events = await all(engine.generate(request, live()))

  expect(events.slice(1)).toEqual([
    { type: 'reasoning', text: 'Hm.', tokens: 1 },
    { type: 'text', text: 'Wait', tokens: 1 },
    { type: 'tool-call', index: 0, id: 'call_0', name: 'weather' },
    { type: 'tool-arguments', index: 0, json: '{"city":"Paris"}', tokens: 1 },
    { type: 'tool-call', index: 1, id: 'call_x', name: 'time' },
    { type: 'tool-arguments', index: 1, json: '{"zone":', tokens: 1 },
    { type: 'tool-arguments', index: 1, json: '"CET"}', tokens: 1 },
    { type: 'tool-call', index: 2, id: 'call_2', name: 'now' },
    { type: 'tool-arguments', index: 2, json: '{}', tokens: 1 },
    expect.objectContaining({ type: 'end', finishReason: 'tool-calls' }),
  ])
  expect(events.at(-1)).toMatchObject({ usage: { outputTokens: 6 } })
})

test('a call that maxTokens cuts is incomplete', async () => {
  const engine = scriptedEngine([{ call: 'now' }, { call: 'weather', arguments: ['{"city":', '"Paris"}'] }])

  const events = await all(engine.generate({ ...request, maxTokens: 2 }, live()))

  expect(events.at(-2)).toMatchObject({ type: 'tool-arguments', index: 1, json: '{"city":' })
  expect(events.at(-1)).toMatchObject({ finishReason: 'length', incompleteCalls: [1] })
})

test('a call whose arguments are not an object is incomplete', async () => {
  const engine = scriptedEngine([{ call: 'weather', arguments: ['{"city":'] }])

  const events = await all(engine.generate(request, live()))

  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', incompleteCalls: [0] })
})

test('logprobs are emitted on request, with the requested number of alternatives', async () => {
  const token = (text: string, logprob: number) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob })
  const top = [token('Hi', -0.1), token('Ho', -2)]
  const engine = scriptedEngine([{ text: 'Hi', logprobs: [{ ...token('Hi', -0.1), top }] }, '!'])

  const asked = await all(engine.generate({ ...request, logprobs: 1 }, live()))
  const unasked = await all(engine.generate(request, live()))

  expect(asked.slice(1, 3)).toEqual([
    {
      type: 'text',
      text: 'Hi',
      tokens: 1,
      logprobs: [{ ...token('Hi', -0.1), top: [token('Hi', -0.1)] }],
    },
    { type: 'text', text: '!', tokens: 1 },
  ])
  expect(unasked[1]).toEqual({ type: 'text', text: 'Hi', tokens: 1 })
})

test('prompt tokens are emitted on request, even without output', async () => {
  const token = (text: string, logprob: number) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob })
  const asks = { ...request, logprobs: 0, promptLogprobs: true } as const
  const told = { ...token('Hi', -0.1), top: [token('Ho', -2)] }
  const engine = scriptedEngine([{ prompt: [told] }, '!'])

  const asked = await all(engine.generate(asks, live()))
  const alone = await all(engine.generate({ ...asks, maxTokens: 0 }, live()))
  const unasked = await all(engine.generate({ ...request, logprobs: 0 }, live()))

  expect(asked[1]).toEqual({ type: 'prompt', tokens: [{ ...told, top: [] }] })
  expect(asked.map(({ type }) => type)).toEqual(['start', 'prompt', 'text', 'end'])
  expect(alone.map(({ type }) => type)).toEqual(['start', 'prompt', 'end'])
  expect(alone.at(-1)).toMatchObject({ finishReason: 'length', usage: { outputTokens: 0 } })
  expect(unasked.map(({ type }) => type)).toEqual(['start', 'text', 'end'])
})

test('a single error is thrown before the first event', async () => {
  const error = new LlmError('not_found', 'No such model.')
  const engine = scriptedEngine(error)
  const events: GenerateEvent[] = []

  const reading = (async () => {
    for await (const event of engine.generate(request, live())) events.push(event)
  })()

  await expect(reading).rejects.toBe(error)
  expect(events).toEqual([])
})

test('an error in a list ends the answer at its position', async () => {
  const error = new LlmError('upstream', 'The process ended.')
  const engine = scriptedEngine(['Hel', error, 'lo'])
  const events: GenerateEvent[] = []

  const reading = (async () => {
    for await (const event of engine.generate(request, live())) events.push(event)
  })()

  await expect(reading).rejects.toBe(error)
  expect(textsOf(events)).toEqual(['Hel'])
})

test('requests are recorded in order', async () => {
  const engine = scriptedEngine('Hi.')
  const second = { ...request, model: 'second' }

  await all(engine.generate(request, live()))
  await all(engine.generate(second, live()))

  expect(engine.requests).toEqual([request, second])
})

test('running counts answers in progress, however they end', async () => {
  const engine = scriptedEngine(({ model }) => (model === 'bad' ? new LlmError('upstream', 'No.') : 'Hi.'))
  const counts = [engine.running]

  const one = engine.generate(request, live())[Symbol.asyncIterator]()
  await one.next()
  counts.push(engine.running)
  await all(engine.generate(request, live()))
  counts.push(engine.running)
  await all(engine.generate({ ...request, model: 'bad' }, live())).catch(() => {})
  counts.push(engine.running)
  await one.return?.()
  counts.push(engine.running)

  expect(counts).toEqual([0, 1, 1, 1, 0])
})

test('counting tokens counts the messages of a prompt, and is not a request', async () => {
  const engine = scriptedEngine('Hello there.')

  expect(await engine.countTokens(request, live())).toBe(2)
  expect(engine.requests).toEqual([])
})

test('a text prompt counts as one message, and as two with a system text', async () => {
  const engine = scriptedEngine(({ input }) => (input.kind === 'text' ? 'A text.' : 'A conversation.'))
  const text: GenerateRequest = { model: 'any', input: { kind: 'text', prompt: ['Hi ', [1, 2], 'there'] } }
  const withSystem: GenerateRequest = {
    model: 'any',
    input: { kind: 'text', prompt: ['Hi'], system: 'Be brief.' },
  }

  const events = await all(engine.generate(text, live()))

  expect(textsOf(events)).toEqual(['A', ' text.'])
  expect(events[0]).toMatchObject({ type: 'start', inputTokens: 1 })
  expect(await engine.countTokens(withSystem, live())).toBe(2)
})

test('rendering a prompt returns one line per message, and is not a request', async () => {
  const engine = scriptedEngine('Hello there.')
  const text: GenerateRequest = {
    model: 'any',
    input: { kind: 'text', prompt: ['Hi ', [1, 2], 'there'], system: 'Be kind.' },
  }

  expect(await engine.render(request, live())).toBe('Be brief.\nHi')
  expect(await engine.render(text, live())).toBe('Be kind.\nHi there')
  expect(engine.requests).toEqual([])
})

test('texts are embedded as unit vectors, scored by words, and tokenized to code points', async () => {
  const engine = scriptedEngine('Hello there.')
  const inputs = ['A fox ran.', 'ran. A fox', [65, 32]]

  const { embeddings, inputTokens } = await engine.embed({ model: 'any', inputs }, live())
  const again = await engine.embed({ model: 'any', inputs, dimensions: 2 }, live())
  const documents = ['A fox ran.', 'It ran.', '']
  const { scores } = await engine.rerank({ model: 'any', query: 'fox ran', documents }, live())
  const tokens = await engine.tokenize({ model: 'any', text: 'Hö 🦊' }, live())

  for (const vector of [...embeddings, ...again.embeddings]) expect(Math.hypot(...vector)).toBeCloseTo(1, 9)
  expect(embeddings.map(({ length }) => length)).toEqual([8, 8, 8])
  expect(again.embeddings.map(({ length }) => length)).toEqual([2, 2, 2])
  expect(embeddings[0]).not.toEqual(embeddings[1])
  expect(inputTokens).toBe(22)
  expect(scores).toEqual([1, 0.5, 0])
  expect(tokens).toEqual([72, 246, 32, 129_418])
  expect(await engine.detokenize({ model: 'any', tokens }, live())).toBe('Hö 🦊')
  expect(engine.requests).toEqual([])
})

test('a model stays loaded until it is unloaded, with the requested context size', async () => {
  const engine = scriptedEngine('Hello there.', { contextSize: 32 })

  await engine.load('any', { contextSize: 16, keepAlive: 'forever' }, live())
  await engine.countTokens({ ...request, model: 'asked' }, live())
  const loaded = engine.loaded()
  await engine.unload('any')
  await engine.unload('other')

  expect(loaded).toMatchObject([
    { name: 'any', state: 'ready', contextSize: 16 },
    { name: 'asked', state: 'ready', contextSize: 32 },
  ])
  expect(engine.loaded()).toMatchObject([{ name: 'asked' }])
})

test('a load for a caller who asks for a larger context, but may not choose it, is rejected', async () => {
  const engine = scriptedEngine('Hello there.', { contextSize: 32 })
  const load = (requestedContextSize: number) => engine.load('any', {}, { ...live(), requestedContextSize })

  await load(32)
  await expect(load(33)).rejects.toMatchObject({
    code: 'permission',
    message: expect.stringMatching(/`contextSize` of 33 requires the scope 'models'.*`local\.contextSize`/),
  })
  expect(engine.loaded()).toMatchObject([{ name: 'any', contextSize: 32 }])
})

test('an aborted answer ends without an end event, even during a delay', async () => {
  const controller = new AbortController()
  const engine = scriptedEngine('Hello there.', { delayMs: 60_000 })
  const reading = all(engine.generate(request, { signal: controller.signal }))
  await new Promise((resolve) => setImmediate(resolve))

  controller.abort()

  expect((await reading).map(({ type }) => type)).toEqual(['start'])
  expect(engine.running).toBe(0)
})

test.each([undefined, 5, [5], { text: 'Hi' }])('the script %j is rejected', (script) => {
  expect(() => scriptedEngine(script as unknown as Script)).toThrow('Expected a scripted answer: a text')
})

test('the error for a misspelt option names the option', () => {
  expect(() => scriptedEngine('Hi', { delay: 300 } as object)).toThrow('Unknown option `delay`')
})

test('a prompt is cached up to its breakpoints, per tenant, by the injected clock', async () => {
  let now = 0
  const engine = scriptedEngine('Hello.', { now: () => now })
  const kept: GenerateRequest = {
    model: 'any',
    input: {
      kind: 'chat',
      tools: [{ name: 'now', parameters: {} }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache: '5m' }] }],
    },
  }
  const ask = async (tenant: string, request = kept): Promise<unknown> => {
    const events = await all(engine.generate(request, { ...live(), tenant }))
    const [start, end] = [events[0], events.at(-1)]
    if (start?.type !== 'start' || end?.type !== 'end') throw new Error('no whole answer')
    expect(end.usage).toMatchObject({
      inputTokens: start.inputTokens,
      cacheReadTokens: start.cacheReadTokens,
      cacheWriteTokens: start.cacheWriteTokens,
    })
    return [start.cacheReadTokens, start.cacheWriteTokens['5m']]
  }

  expect(await engine.countTokens(kept, live())).toBe(2)
  expect(await ask('ann', { ...kept, maxTokens: 0 })).toEqual([0, 2])
  expect(await ask('ben')).toEqual([0, 2])
  expect(await ask('ann')).toEqual([2, 0])
  now = 5 * 60_000
  expect(await ask('ann')).toEqual([0, 2])
})

test('a failure before the start caches nothing', async () => {
  const failure = new LlmError('overloaded', 'Busy.')
  let said: string | LlmError = failure
  const engine = scriptedEngine(() => said)
  const messages = [{ role: 'user', content: [{ type: 'text' as const, text: 'Hi', cache: '1h' as const }] }]
  const kept: GenerateRequest = { model: 'any', input: { kind: 'chat', messages } }

  await expect(all(engine.generate(kept, live()))).rejects.toBe(failure)
  said = 'Hello.'

  expect((await all(engine.generate(kept, live())))[0]).toMatchObject({ cacheReadTokens: 0 })
})
