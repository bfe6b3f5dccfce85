import { channel } from 'node:diagnostics_channel'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createLlm } from '../../create-llm.ts'
import { type DiagnosticListeners, subscribe } from '../../diagnostics/channels.ts'
import type { DiagnosticEvents } from '../../diagnostics/events.ts'
import { routesFor } from '../../dialects/index.ts'
import { LlmError } from '../../errors.ts'
import { toFetchHandler } from '../../http/fetch.ts'
import type { Llm } from '../../llm.ts'
import type { LlmOptions } from '../../options.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'

const names = [
  'modelmount:call:start',
  'modelmount:call:admitted',
  'modelmount:call:first-token',
  'modelmount:call:end',
  'modelmount:call:error',
  'modelmount:limit:refused',
  'modelmount:cache:hit',
  'modelmount:cache:write',
] as const

interface Seen {
  readonly name: string
  readonly event: DiagnosticEvents['modelmount:call:end'] & DiagnosticEvents['modelmount:call:error']
}

const llms: Llm[] = []
afterEach(async () => {
  for (const llm of llms.splice(0)) await llm.close()
})

async function start(options: LlmOptions = {}): Promise<Llm> {
  const llm = await createLlm({ engine: scriptedEngine('one two three'), models: [], ...options })
  llms.push(llm)
  return llm
}

/** Records all events of an `Llm`, without the prefix of their channels. */
function watch(llm: Llm): readonly Seen[] {
  const seen: Seen[] = []
  const listeners = Object.fromEntries(
    names.map((name) => [
      name,
      (event: unknown) =>
        seen.push({ name: name.slice('modelmount:'.length), event: event as Seen['event'] }),
    ]),
  ) as DiagnosticListeners
  onTestFinished(subscribe(llm, listeners))
  return seen
}
const namesOf = (seen: readonly Seen[]): readonly string[] => seen.map(({ name }) => name)

test('an answer has a start, an admission, a first token and an end, with its times and tokens', async () => {
  const llm = await start()
  const seen = watch(llm)

  await llm.chat('Hello', { model: 'tiny', caller: { id: 'ann', tenant: 'team' } })

  expect(namesOf(seen)).toEqual(['call:start', 'call:admitted', 'call:first-token', 'call:end'])
  const call = { kind: 'generate', caller: 'ann', tenant: 'team', isBackground: false }
  for (const { event } of seen) {
    expect(event.llm).toBe(llm)
    expect(event.call).toMatchObject({ ...call, id: seen[0]?.event.call.id })
  }
  expect(seen.map(({ event }) => event.call.model)).toEqual(['tiny', ...Array(3).fill('tiny:latest')])
  const end = seen.at(-1)?.event
  expect(end).toMatchObject({
    status: 'ended',
    usage: { inputTokens: 1, outputTokens: 3 },
    finishReasons: ['stop'],
    timings: [{ loadMs: 0, promptMs: expect.any(Number), generateMs: expect.any(Number) }],
  })
  expect(end?.queueMs).toBeGreaterThanOrEqual(0)
  expect(end?.firstTokenMs).toBeGreaterThanOrEqual(end?.queueMs ?? Number.NaN)
  expect(end?.durationMs).toBeGreaterThanOrEqual(end?.firstTokenMs ?? Number.NaN)
})

test('a call over HTTP has its dialect, its route and the id of the request', async () => {
  const llm = await start({ auth: 'host' })
  const seen = watch(llm)
  const handle = toFetchHandler(routesFor(), llm, { authenticate: () => ({ id: 'ann' }) })

  const response = await handle(
    new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }),
    }),
  )
  await response.text()

  const requestId = response.headers.get('x-request-id')
  expect(requestId).toBeTruthy()
  expect(namesOf(seen)).toEqual(['call:start', 'call:admitted', 'call:first-token', 'call:end'])
  for (const { event } of seen)
    expect(event.call).toMatchObject({ dialect: 'openai', route: '/v1/chat/completions', requestId })
})

test('a call whose reader leaves ends as aborted', async () => {
  const llm = await start({ engine: scriptedEngine('one two three four', { delayMs: 1 }) })
  const seen = watch(llm)
  const leaving = new AbortController()

  for await (const _ of llm.chat('Hello', { model: 'tiny', stream: true, signal: leaving.signal })) {
    leaving.abort()
    break
  }
  await expect.poll(() => namesOf(seen)).toContain('call:end')

  expect(seen.at(-1)?.event).toMatchObject({ status: 'aborted' })
})

test('a call that the engine fails has an error, and no end', async () => {
  const llm = await start({ engine: scriptedEngine([new LlmError('upstream', 'Broken.')]) })
  const seen = watch(llm)

  await expect(llm.chat('Hello', { model: 'tiny' })).rejects.toThrow('Broken.')

  expect(namesOf(seen)).toEqual(['call:start', 'call:admitted', 'call:error'])
  expect(seen.at(-1)?.event).toMatchObject({ error: { code: 'upstream' }, firstTokenMs: undefined })
})

test('a refusal of a limit names the limit, and the call was not admitted', async () => {
  const llm = await start()
  const caller = { id: 'ann', limits: { requestsPerMinute: 1 } }
  await llm.chat('Hello', { model: 'tiny', caller })
  const seen = watch(llm)

  await expect(llm.chat('Hello', { model: 'tiny', caller })).rejects.toThrow('limit of 1 request')

  expect(namesOf(seen)).toEqual(['call:start', 'limit:refused', 'call:error'])
  expect(seen[1]?.event.error.details).toMatchObject({ exceeded: 'requests' })
  expect(seen[2]?.event).toMatchObject({ queueMs: undefined, usage: undefined })
})

test('a cached prompt is written once, and then hit', async () => {
  const llm = await start()
  const seen = watch(llm)
  const content = [{ type: 'text', text: 'Notes', cache: '5m' }] as const
  const ask = async () => {
    const input = { kind: 'chat', messages: [{ role: 'user', content }] } as const
    for await (const _ of await llm.generate({ model: 'tiny', input }));
  }

  await ask()
  await ask()

  const cache = seen.filter(({ name }) => name.startsWith('cache:'))
  expect(cache.map(({ name, event }) => [name, event])).toMatchObject([
    ['cache:write', { tokens: 1 }],
    ['cache:hit', { tokens: 1 }],
  ])
})

test('each `Llm` of a process has its own events, until the subscription ends', async () => {
  const [one, other] = [await start(), await start()]
  const seen: string[] = []
  const stop = subscribe(one, { 'modelmount:call:end': ({ call }) => seen.push(call.model) })

  await one.chat('Hello', { model: 'first' })
  await other.chat('Hello', { model: 'second' })
  stop()
  await one.chat('Hello', { model: 'third' })

  expect(seen).toEqual(['first'])
  expect(channel('modelmount:call:end').hasSubscribers).toBe(false)
})

test('the start has what the call asks for, and the headers of its request', async () => {
  const llm = await start({ auth: 'host' })
  const received: DiagnosticEvents['modelmount:call:start'][] = []
  onTestFinished(subscribe(llm, { 'modelmount:call:start': (event) => received.push(event) }))

  await llm.chat('Hello', { model: 'tiny', maxTokens: 5, temperature: 0.5 })
  const handle = toFetchHandler(routesFor(), llm, { authenticate: () => ({ id: 'ann' }) })
  await handle(
    new Request('http://localhost/v1/embeddings', {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: 'parent' },
      body: JSON.stringify({ model: 'tiny', input: 'Hi', dimensions: 2 }),
    }),
  )

  const [chat, embed] = received
  expect(chat?.request).toMatchObject({ input: 'chat', isStream: false, maxTokens: 5, answersPerPrompt: 1 })
  expect(chat?.request.sampling).toMatchObject({ temperature: 0.5 })
  expect(chat?.header).toBeUndefined()
  expect(received).toHaveLength(2)
  expect(embed?.request).toMatchObject({ input: undefined, dimensions: 2 })
  expect(embed?.header?.('traceparent')).toBe('parent')
})

test('a channel has the prompt and the answer of a call, and no other event has them', async () => {
  const llm = await start({ engine: scriptedEngine('the answer') })
  const seen = watch(llm)
  const contents: DiagnosticEvents['modelmount:call:content'][] = []
  const unsubscribe = subscribe(llm, { 'modelmount:call:content': (event) => contents.push(event) })

  await llm.chat('the question', { model: 'tiny' })
  unsubscribe()
  await llm.chat('another question', { model: 'tiny' })

  expect(contents).toHaveLength(1)
  expect(contents[0]).toMatchObject({
    call: { id: seen[0]?.event.call.id },
    inputs: [
      { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'the question' }] }] },
    ],
    answers: [{ text: 'the answer', reasoning: '', toolCalls: [] }],
  })
  expect(JSON.stringify(seen.map(({ event: { llm: _, ...event } }) => event))).not.toMatch(/question|answer"/)
})

test('each tool that a chat runs has an event, with what it has thrown', async () => {
  const calls = ['works', 'fails', 'unknown'].map((call, index) => ({ call, id: `call_${index}` }))
  let next = 0
  const llm = await start({ engine: scriptedEngine(() => (next++ === 0 ? calls : 'done')) })
  const ended: DiagnosticEvents['modelmount:tool:end'][] = []
  onTestFinished(subscribe(llm, { 'modelmount:tool:end': (event) => ended.push(event) }))
  const broken = new RangeError('broken')

  await llm.chat('Hello', {
    model: 'tiny',
    tools: {
      works: { description: 'Works.', execute: () => 'ok' },
      fails: {
        execute: () => {
          throw broken
        },
      },
    },
  })

  expect(ended.map(({ name, description, error }) => [name, description, error])).toEqual([
    ['fails', undefined, broken],
    ['works', 'Works.', undefined],
  ])
  for (const { toolCallId, durationMs } of ended) {
    expect(toolCallId).toBeTruthy()
    expect(durationMs).toBeGreaterThanOrEqual(0)
  }
})

test('the end has the cost of the call where the model has a price', async () => {
  const prices = { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
  const llm = await start({ database: ':memory:', prices })
  const costs: unknown[] = []
  onTestFinished(
    subscribe(llm, { 'modelmount:call:end': ({ call, costNanoUsd }) => costs.push(call.model, costNanoUsd) }),
  )

  await llm.chat('Hello', { model: 'tiny' })
  await llm.chat('Hello', { model: 'other' })

  expect(costs).toEqual(['tiny:latest', 7_000, 'other', undefined])
})

test('the progress of a prompt is published, and not passed on to a reader that has not asked for it', async () => {
  const llm = await start()
  const input = { kind: 'text', prompt: ['Hello'] } as const
  const read = async (returnProgress: object) => {
    const types: string[] = []
    for await (const { type } of await llm.generate({ model: 'tiny', input, ...returnProgress }))
      types.push(type)
    return types
  }
  const published: DiagnosticEvents['modelmount:call:progress'][] = []
  onTestFinished(subscribe(llm, { 'modelmount:call:progress': (event) => published.push(event) }))

  expect(await read({})).not.toContain('progress')
  const total = published.at(-1)?.progress
  expect(total).toMatchObject({ phase: 'prompt', processed: 1, total: 1 })
  expect(published.at(-1)).toMatchObject({ llm, call: { model: 'tiny:latest' } })
  const count = published.length
  expect(await read({ returnProgress: true })).toContain('progress')
  expect(published.length).toBeGreaterThan(count)
})

test('an engine is asked for progress only while the channel has a subscriber', async () => {
  const engine = scriptedEngine('one')
  const asked: boolean[] = []
  const generate: typeof engine.generate = (request, call) => {
    asked.push(call.onProgress !== undefined)
    return engine.generate(request, call)
  }
  const llm = await start({ engine: { ...engine, generate } })

  await llm.chat('Hello', { model: 'tiny' })
  const unsubscribe = subscribe(llm, { 'modelmount:call:progress': () => {} })
  await llm.chat('Hello', { model: 'tiny' })
  unsubscribe()
  await llm.chat('Hello', { model: 'tiny' })

  expect(asked).toEqual([false, true, false])
})
