/** Progress of loads and prompts, and the times of answers, as events and over HTTP. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { type DiagnosticEvents, subscribe } from '@modelmount/core/diagnostics'
import type {
  GenerateEvent,
  GenerateRequest,
  GenerationProgress,
  LoadProgress,
  Message,
} from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({
    models: emptyFolder(),
    local: { contextSize: 4_096, parallel: 2, reloadCooldown: 0 },
  })
  server = await listen(toNodeHandler(routesFor(), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

type Progress = Extract<GenerateEvent, { type: 'progress' }>
type PromptEvent = Extract<Progress, { phase: 'prompt' }>

const long = (first: string): Message => ({
  role: 'user',
  content: [{ type: 'text', text: `${first} ${'What is a GGUF file? '.repeat(60)}` }],
})

async function run(
  fields: Partial<GenerateRequest>,
  { first = 'A', signal = new AbortController().signal, onEvent = (_: GenerateEvent): void => {} } = {},
): Promise<readonly GenerateEvent[]> {
  const all: GenerateEvent[] = []
  const generation = await llm.generate(
    {
      model: 'tiny',
      input: { kind: 'chat', messages: [long(first)] },
      maxTokens: 4,
      sampling: { temperature: 0 },
      ...fields,
    },
    { signal },
  )
  for await (const event of generation) {
    all.push(event)
    onEvent(event)
  }
  return all
}

const progressOf = (events: readonly GenerateEvent[]): readonly Progress[] =>
  events.filter((event) => event.type === 'progress')
const promptsOf = (events: readonly GenerateEvent[]): readonly PromptEvent[] =>
  progressOf(events).filter((event) => event.phase === 'prompt')
const isAscending = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0))

test('the load is reported from 0 to 1 before the answer starts, and only while it lasts', async () => {
  await llm.unload('tiny')
  const events = await run({ returnProgress: true })
  const again = await run({ returnProgress: true })

  const loads = progressOf(events).flatMap((event) => (event.phase === 'load' ? [event.fraction] : []))
  expect(loads.length).toBeGreaterThan(3)
  expect([loads[0], loads.at(-1), isAscending(loads)]).toEqual([0, 1, true])
  expect(events.findIndex(({ type }) => type === 'start')).toBe(loads.length)
  expect(progressOf(again).filter(({ phase }) => phase === 'load')).toEqual([])
})

test('two calls that wait for one load both see its progress', async () => {
  await llm.unload('tiny')
  const both = await Promise.all([run({ returnProgress: true }), run({ returnProgress: true }), run({})])

  const fractions = both.map((events) =>
    progressOf(events).flatMap((event) => (event.phase === 'load' ? [event.fraction] : [])),
  )
  expect(fractions.map((of) => [of[0], of.at(-1), isAscending(of)])).toEqual([
    [0, 1, true],
    [0, 1, true],
    [undefined, undefined, true],
  ])
})

test('the evaluation of a prompt is reported from the cached tokens to all of them, before the output', async () => {
  const cold = await run({ returnProgress: true }, { first: 'Cold' })
  const warm = await run({ returnProgress: true }, { first: 'Cold' })

  for (const events of [cold, warm]) {
    const prompts = promptsOf(events)
    const start = events.find((event) => event.type === 'start')
    const processed = prompts.map((event) => event.processed)
    expect(new Set(prompts.map(({ total, cached }) => `${total} ${cached}`))).toEqual(
      new Set([`${start?.inputTokens} ${start?.reusedTokens}`]),
    )
    expect([processed[0], processed.at(-1)]).toEqual([start?.reusedTokens, start?.inputTokens])
    expect(isAscending(processed)).toBe(true)
    expect(prompts.every(({ ms }, index) => ms >= (prompts[index - 1]?.ms ?? 0))).toBe(true)
    const order = events.map(({ type }) => type)
    expect(order.lastIndexOf('progress')).toBeLessThan(order.findIndex((type) => /text|reasoning/.test(type)))
  }
  expect(promptsOf(cold)[0]?.cached).toBeLessThan(100)
  // The prompt is longer than four steps.
  expect(promptsOf(cold).length).toBeGreaterThan(4)
  expect(promptsOf(warm)[0]?.cached).toBeGreaterThan(500)
})

test('a call that does not ask gets no progress and no times', async () => {
  const events = await run({})

  expect(progressOf(events)).toEqual([])
  expect(events.some((event) => event.type !== 'end' && 'timings' in event)).toBe(false)
})

test('an abort during the evaluation ends a call that reports it, and the next call is answered', async () => {
  const controller = new AbortController()
  const events = await run(
    { returnProgress: true },
    {
      first: 'Leaving',
      signal: controller.signal,
      onEvent: (event) => {
        if (event.type === 'progress' && event.phase === 'prompt' && event.processed > event.cached)
          controller.abort()
      },
    },
  )
  const next = await run({})

  expect(events.at(-1)?.type).toBe('progress')
  expect(promptsOf(events).at(-1)?.processed).toBeLessThan(promptsOf(events)[0]?.total ?? 0)
  expect(next.at(-1)?.type).toBe('end')
})

test('the times of an answer grow with each token, up to those of its end', async () => {
  const events = await run({ returnTimings: true, maxTokens: 8 })

  const times = events.flatMap((event) => ('timings' in event && event.timings ? [event.timings] : []))
  expect(times.length).toBeGreaterThan(3)
  expect(new Set(times.map(({ promptMs }) => promptMs)).size).toBe(1)
  expect(isAscending(times.map(({ generateMs }) => generateMs))).toBe(true)
})

test('llm.load reports its progress from 0 to 1, and nothing when the model is loaded', async () => {
  await llm.unload('tiny')
  const reported: LoadProgress[] = []
  await llm.load('tiny', { onProgress: (progress) => reported.push(progress) })
  const again: LoadProgress[] = []
  await llm.as({ id: 'ada' }).load('tiny', { onProgress: (progress) => again.push(progress) })

  const fractions = reported.map(({ fraction }) => fraction)
  expect(fractions.length).toBeGreaterThan(3)
  expect([fractions[0], fractions.at(-1), isAscending(fractions)]).toEqual([0, 1, true])
  expect(reported[0]).toEqual({ phase: 'load', fraction: 0 })
  expect(again).toEqual([])
})

test('llm.load and llm.chat reject with the error of onProgress, and the model answers afterwards', async () => {
  const onProgress = (): never => {
    throw new Error('no bar')
  }
  await llm.unload('tiny')

  await expect(llm.load('tiny', { onProgress })).rejects.toThrow('no bar')
  await expect(llm.chat('Hello', { model: 'tiny', onProgress })).rejects.toThrow('no bar')
  await expect(llm.load('tiny', { onProgress: 'bar' as never })).rejects.toThrow(
    "onProgress: expected a function, got 'bar'.",
  )
  expect((await llm.chat('Hello', { model: 'tiny', maxTokens: 4 })).usage.outputTokens).toBe(4)
})

test.each([true, false])(
  'llm.chat reports the load and its prompt before its text, with stream: %s',
  async (stream) => {
    await llm.unload('tiny')
    const seen: (GenerationProgress | 'text')[] = []
    const options = {
      model: 'tiny',
      maxTokens: 4,
      onProgress: (progress: GenerationProgress) => seen.push(progress),
    }
    const input = question(`Chat ${stream}`)
    if (stream) {
      for await (const _ of llm.chat(input, { ...options, stream: true })) seen.push('text')
    } else {
      await llm.chat(input, options)
      seen.push('text')
    }

    const phases = seen.map((one) => (one === 'text' ? one : one.phase))
    expect([...new Set(phases)]).toEqual(['load', 'prompt', 'text'])
    expect(phases).toEqual(phases.toSorted())
    expect(seen.find((one) => one !== 'text' && one.phase === 'prompt')).toEqual({
      ...{ phase: 'prompt', total: expect.any(Number), cached: expect.any(Number) },
      ...{ processed: expect.any(Number), ms: expect.any(Number) },
    })
  },
)

test('the channel of progress has the load and the prompt of each call, whose reader sees none of it', async () => {
  await llm.unload('tiny')
  const published: DiagnosticEvents['modelmount:call:progress'][] = []
  const unsubscribe = subscribe(llm, { 'modelmount:call:progress': (event) => published.push(event) })
  const events = await run({}, { first: 'Published' })
  const asked = await run({ returnProgress: true }, { first: 'Asked' })
  await llm.unload('tiny')
  await llm.tokenize({ model: 'tiny', text: 'Hello' })
  unsubscribe()

  expect(progressOf(events)).toEqual([])
  const [first = '', second = '', third] = new Set(published.map(({ call }) => call.id))
  const ofCall = (id: string) => published.flatMap(({ call, progress }) => (call.id === id ? [progress] : []))
  const phases = ofCall(first).map(({ phase }) => phase)
  expect([...new Set(phases)]).toEqual(['load', 'prompt'])
  expect(phases).toEqual(phases.toSorted())
  const total = events.find((event) => event.type === 'start')?.inputTokens
  expect(ofCall(first).at(-1)).toMatchObject({ phase: 'prompt', total, processed: total })
  expect(ofCall(second)).toEqual(progressOf(asked).map(({ type: _, ...progress }) => progress))
  const tokenized = published.filter(({ call }) => call.id === third)
  expect(tokenized[0]).toMatchObject({ call: { kind: 'tokenize' }, progress: { phase: 'load', fraction: 0 } })
  expect(tokenized.at(-1)).toMatchObject({ progress: { phase: 'load', fraction: 1 } })
})

const question = (first: string) => `${first} ${'What is a GGUF file? '.repeat(60)}`
const asked = { return_progress: true, timings_per_token: true } as object

/** Fields of llama.cpp's server in a chunk. */
interface Measured {
  readonly prompt_progress?: { readonly total: number; readonly cache: number; readonly processed: number }
  readonly timings?: Readonly<Record<string, number>>
}

test.each([1, 2])("OpenAI's client joins a stream with progress and %i choices", async (n) => {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 })
  const body = {
    model: 'tiny',
    n,
    temperature: 0,
    max_tokens: 6,
    messages: [] as OpenAI.ChatCompletionMessageParam[],
  }
  body.messages.push({ role: 'user', content: question(`Choices ${n}`) })
  const plain = await client.chat.completions.create({ ...body, seed: 3 })
  const chunks: (OpenAI.ChatCompletionChunk & Measured)[] = []
  const options = { include_usage: true }
  const stream = client.chat.completions.stream({ ...body, seed: 3, stream_options: options, ...asked })
  for await (const chunk of stream) chunks.push(chunk)

  const joined = await stream.finalChatCompletion()
  expect(joined.choices.map(({ message }) => message.content)).toEqual(
    plain.choices.map(({ message }) => message.content),
  )
  expect(joined.choices.map(({ message }) => message.role)).toEqual(Array(n).fill('assistant'))
  const progress = chunks.flatMap((chunk) => chunk.prompt_progress ?? [])
  expect(isAscending(progress.map(({ processed }) => processed))).toBe(true)
  expect(progress.at(-1)?.processed).toBe(joined.usage?.prompt_tokens)
  const last = chunks.at(-1)
  expect([last?.choices, last?.timings?.cache_n]).toEqual([
    [],
    joined.usage?.prompt_tokens_details?.cached_tokens,
  ])
  expect(last?.timings?.predicted_n).toBe(6)
})

test("OpenAI's client joins a streamed response with progress", async () => {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 })
  const types = new Set<string>()
  const stream = client.responses.stream({
    model: 'tiny',
    input: question('Responses'),
    max_output_tokens: 6,
    ...asked,
  })
  let progress: Measured['prompt_progress']
  for await (const event of stream) {
    const { prompt_progress: reported, timings } = event as Measured
    progress = reported ?? progress
    if (timings) types.add(event.type)
  }

  const { output_text, usage } = await stream.finalResponse()
  expect(output_text).not.toBe('')
  expect(progress).toMatchObject({ total: usage?.input_tokens, processed: usage?.input_tokens })
  expect([...types]).toEqual(['response.in_progress', 'response.output_text.delta', 'response.incomplete'])
})

test("Ollama's routes report progress and timings to a client that asks", async () => {
  const lines = async (path: string, body: object) => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', options: { num_predict: 3 }, ...asked, ...body }),
    })
    return (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Measured & { done: boolean; prompt_eval_count?: number })
  }

  for (const all of [
    await lines('/api/chat', { messages: [{ role: 'user', content: question('Chat') }] }),
    await lines('/api/generate', { prompt: question('Generate') }),
  ]) {
    const progress = all.flatMap((line) => line.prompt_progress ?? [])
    const end = all.at(-1)
    expect([end?.done, end?.timings?.predicted_n]).toEqual([true, 3])
    expect(progress.at(-1)?.processed).toBe(end?.prompt_eval_count)
    expect(all.slice(progress.length).every(({ timings }) => timings !== undefined)).toBe(true)
  }
})

test("Ollama's routes report the progress of a load without a prompt, and end with its usual line", async () => {
  const load = async (fields: object) => {
    await llm.unload('tiny')
    const response = await fetch(`${server.url}/api/generate`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', return_progress: true, ...fields }),
    })
    const lines = (await response.text()).trim().split('\n')
    return { status: response.status, lines: lines.map((line) => JSON.parse(line)) }
  }

  const { lines } = await load({})
  const fractions = lines.slice(0, -1).map((line) => line.load_progress.fraction)
  expect([fractions[0], fractions.at(-1), isAscending(fractions)]).toEqual([0, 1, true])
  expect(lines.at(-1)).toMatchObject({ model: 'tiny', response: '', done: true, done_reason: 'load' })
  expect((await load({ stream: false })).lines).toMatchObject([{ done: true, done_reason: 'load' }])
  expect(await load({ options: { num_ctx: 1e9 } })).toMatchObject({ status: 400, lines: [{ error: /./ }] })
})

test('a whole answer has timings, and no progress', async () => {
  for (const [path, body] of [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
    ['/v1/completions', { prompt: 'Hello' }],
    ['/v1/responses', { input: 'Hello' }],
    ['/api/chat', { messages: [{ role: 'user', content: 'Hello' }], stream: false }],
  ] as const) {
    const send = async (fields: object) => {
      const response = await fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'tiny', ...body, ...fields }),
      })
      return (await response.json()) as Measured
    }

    const { timings, prompt_progress: progress } = await send(asked)
    expect([path, progress]).toEqual([path, undefined])
    expect(Object.keys(timings ?? {})).toEqual([
      ...['cache_n', 'prompt_n', 'prompt_ms', 'prompt_per_token_ms', 'prompt_per_second'],
      ...['predicted_n', 'predicted_ms', 'predicted_per_token_ms', 'predicted_per_second'],
    ])
    expect('timings' in (await send({}))).toBe(false)
  }
})
