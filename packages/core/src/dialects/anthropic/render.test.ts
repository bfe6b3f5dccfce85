import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Generation } from '../../calls/generation.ts'
import { type GenerateEvent, uncached } from '../../engine/events.ts'
import { readEvents } from '../../testing/read-events.ts'
import { ping, renderEvents, renderMessage, type ThinkingDisplay, toThinkingDisplay } from './render.ts'

const head = { id: 'abc', model: 'team/tiny', createdAt: new Date(1_700_000_000_000), limits: [] }
const usage = { inputTokens: 10, reusedTokens: 4, ...uncached, outputTokens: 3 }
const timings = { loadMs: 0, promptMs: 0, generateMs: 0 }
const common = { id: 'msg_abc', type: 'message', role: 'assistant', model: 'team/tiny', container: null }
const wireUsage = {
  input_tokens: 10,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: 'standard',
}

type Event<Type> = Extract<GenerateEvent, { type: Type }>
type Piece = string | Exclude<GenerateEvent, { type: 'start' | 'end' }>
type Ending = Partial<Pick<Event<'end'>, 'finishReason' | 'stopSequence' | 'incompleteCalls'>>

/** Creates a generation that emits the pieces. A string stands for a text event. */
function generationOf(pieces: readonly Piece[], end: Ending = {}): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield {
      type: 'start',
      model: 'team/tiny',
      inputTokens: 10,
      reusedTokens: 4,
      ...uncached,
      fingerprint: 'fp_1',
    }
    for (const piece of pieces)
      yield typeof piece === 'string' ? { type: 'text', text: piece, tokens: 1 } : piece
    yield { type: 'end', finishReason: 'stop', ...end, usage, timings }
  }
  return { ...head, [Symbol.asyncIterator]: events }
}

const thought = (text: string): Piece => ({ type: 'reasoning', text, tokens: 2 })
const call = (index: number, name: string, ...json: readonly string[]): readonly Piece[] => [
  { type: 'tool-call', index, id: `call_${index}`, name },
  ...json.map((json) => ({ type: 'tool-arguments', index, json, tokens: 1 }) as const),
]
const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64')

/** Parses the data of the frames. Expects each frame to have its type as its name. */
async function dataOf(frames: AsyncIterable<string>): Promise<unknown[]> {
  let text = ''
  for await (const frame of frames) text += frame
  const data: unknown[] = []
  for await (const event of readEvents(text)) {
    const value = JSON.parse(event.data)
    expect(event.event).toBe(value.type)
    data.push(value)
  }
  return data
}

const whole = (pieces: readonly Piece[], end: Ending = {}, thoughts: ThinkingDisplay = 'hidden') =>
  renderMessage(generationOf(pieces, end), thoughts, ['STOP'])
const streamed = (pieces: readonly Piece[], end: Ending = {}, thoughts: ThinkingDisplay = 'hidden') =>
  dataOf(renderEvents(generationOf(pieces, end), thoughts, ['STOP']))

test('a complete response is a message', async () => {
  expect(await whole(['Hel', 'lo.'])).toEqual({
    ...common,
    content: [{ type: 'text', text: 'Hello.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    usage: wireUsage,
  })
})

test('an empty answer has no block, complete and streamed', async () => {
  const data = await streamed([])

  expect(await whole([])).toMatchObject({ content: [], stop_reason: 'end_turn' })
  expect(data.map((event) => (event as { type: string }).type)).toEqual([
    'message_start',
    'message_delta',
    'message_stop',
  ])
})

const endings: [Ending, string, string | null][] = [
  [{ finishReason: 'stop' }, 'end_turn', null],
  [{ finishReason: 'stop', stopSequence: 'STOP' }, 'stop_sequence', 'STOP'],
  // A stop sequence of the model, which clients do not know.
  [{ finishReason: 'stop', stopSequence: '</s>' }, 'end_turn', null],
  [{ finishReason: 'length' }, 'max_tokens', null],
  [{ finishReason: 'context' }, 'model_context_window_exceeded', null],
]

test.each(endings)('the ending %j has the stop reason %s', async (end, stop_reason, stop_sequence) => {
  expect(await whole(['a'], end)).toMatchObject({ stop_reason, stop_sequence })
})

test.each(endings)('in a stream, %j has the stop reason %s', async (end, stop_reason, stop_sequence) => {
  const data = await streamed([], end)

  expect(data.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason, stop_sequence } })
})

const cached = {
  inputTokens: 100,
  reusedTokens: 64,
  cacheReadTokens: 60,
  cacheWriteTokens: { '5m': 7, '1h': 20 },
}
async function* cachedEvents(): AsyncGenerator<GenerateEvent> {
  yield { type: 'start', model: 'team/tiny', ...cached, fingerprint: 'fp_1' }
  const kept = { ...cached, cacheWriteTokens: { '5m': 0, '1h': 20 } }
  yield { type: 'end', finishReason: 'stop', usage: { ...kept, outputTokens: 3 }, timings }
}

test('cache reads, cache writes and the rest add up to the prompt', async () => {
  const generation = { ...head, [Symbol.asyncIterator]: cachedEvents }

  expect(await renderMessage(generation, 'hidden')).toMatchObject({
    usage: {
      input_tokens: 20,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 20,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 20 },
    },
  })
})

test('a stream begins with the expected cache writes, and ends with the actual ones', async () => {
  const data = await dataOf(renderEvents({ ...head, [Symbol.asyncIterator]: cachedEvents }, 'hidden'))

  expect(data[0]).toMatchObject({
    message: {
      usage: {
        input_tokens: 13,
        cache_read_input_tokens: 60,
        cache_creation_input_tokens: 27,
        cache_creation: { ephemeral_5m_input_tokens: 7, ephemeral_1h_input_tokens: 20 },
        output_tokens: 0,
      },
    },
  })
  expect(data.at(-2)).toMatchObject({
    usage: {
      input_tokens: 20,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 20,
      output_tokens: 3,
    },
  })
})

test('a stream has the message, its block, the pieces and the end', async () => {
  const { cache_creation, service_tier, ...lastUsage } = wireUsage

  const data = await streamed(['Hel', 'lo.'])

  expect(data).toEqual([
    {
      type: 'message_start',
      message: {
        ...common,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        usage: { ...wireUsage, output_tokens: 0 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo.' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
      usage: lastUsage,
    },
    { type: 'message_stop' },
  ])
})

test.each(['"quoted" \\ and \n\nbroken\r\n', 'event: error\n\n', '\u2028 ü 😀 \u0000', '}}\n\n'])(
  'the text %j arrives unchanged',
  async (text) => {
    const data = await streamed([text])

    expect(data).toHaveLength(6)
    expect(data[2]).toMatchObject({ delta: { type: 'text_delta', text } })
  },
)

test('a heartbeat is an event', () => {
  expect(ping).toBe('event: ping\ndata: {"type":"ping"}\n\n')
})

test('ending the frames early cancels the generation', async () => {
  let closed = false
  async function* answer(): AsyncGenerator<GenerateEvent> {
    try {
      yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
    } finally {
      closed = true
    }
  }
  const frames = renderEvents({ ...head, [Symbol.asyncIterator]: answer }, 'hidden')
  await frames.next()

  await frames.return(undefined)

  expect(closed).toBe(true)
})

const turn = [
  thought('Hm, '),
  thought('a city.'),
  'I look.',
  ...call(0, 'weather', '{"city"', ':"Oslo"}'),
  ...call(1, 'now'),
]
const use = (id: string, name: string, input: object) => ({
  type: 'tool_use',
  id: `toolu_${id}`,
  name,
  input,
  caller: { type: 'direct' },
})

test('reasoning, text and calls become blocks in the same order', async () => {
  expect(await whole(turn, { finishReason: 'tool-calls' }, 'shown')).toMatchObject({
    content: [
      { type: 'thinking', thinking: 'Hm, a city.', signature: sha256('Hm, a city.') },
      { type: 'text', text: 'I look.' },
      use('0', 'weather', { city: 'Oslo' }),
      use('1', 'now', {}),
    ],
    stop_reason: 'tool_use',
    usage: { output_tokens: 3, output_tokens_details: { thinking_tokens: 4 } },
  })
})

test('a streamed block is closed before the next opens, and reasoning is signed', async () => {
  const data = await streamed(turn, { finishReason: 'tool-calls' }, 'shown')

  const delta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
  const start = (index: number, content_block: object) => ({
    type: 'content_block_start',
    index,
    content_block,
  })
  const stop = (index: number) => ({ type: 'content_block_stop', index })
  expect(data.slice(1, -2)).toEqual([
    start(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'Hm, ' }),
    delta(0, { type: 'thinking_delta', thinking: 'a city.' }),
    delta(0, { type: 'signature_delta', signature: sha256('Hm, a city.') }),
    stop(0),
    start(1, { type: 'text', text: '' }),
    delta(1, { type: 'text_delta', text: 'I look.' }),
    stop(1),
    start(2, use('0', 'weather', {})),
    delta(2, { type: 'input_json_delta', partial_json: '{"city"' }),
    delta(2, { type: 'input_json_delta', partial_json: ':"Oslo"}' }),
    stop(2),
    start(3, use('1', 'now', {})),
    stop(3),
  ])
  expect(data.at(-2)).toMatchObject({
    delta: { stop_reason: 'tool_use' },
    usage: { output_tokens_details: { thinking_tokens: 4 } },
  })
})

test('reasoning that was not requested is hidden, but counted', async () => {
  const data = await streamed([thought('Hm.'), 'Hello.'])

  expect(await whole([thought('Hm.'), 'Hello.'])).toMatchObject({
    content: [{ type: 'text', text: 'Hello.' }],
    usage: { output_tokens_details: { thinking_tokens: 2 } },
  })
  expect(JSON.stringify(data)).not.toContain('Hm.')
  expect(data[1]).toMatchObject({ type: 'content_block_start', index: 0, content_block: { type: 'text' } })
})

test('hidden reasoning has no frames, so that pings are sent', async () => {
  const frames: string[] = []
  for await (const frame of renderEvents(generationOf([thought('Hm.'), thought('So.')]), 'hidden'))
    frames.push(frame)

  expect(frames).not.toContain('')
  expect(frames).toHaveLength(3)
})

test('omitted reasoning shows only its signature', async () => {
  const data = await streamed([thought('Hm.'), 'Hello.'], {}, 'omitted')

  const signature = sha256('Hm.')
  expect(await whole([thought('Hm.'), 'Hello.'], {}, 'omitted')).toMatchObject({
    content: [{ type: 'thinking', thinking: '', signature }, { text: 'Hello.' }],
  })
  expect(data.slice(1, 4)).toMatchObject([
    { content_block: { type: 'thinking' } },
    { delta: { type: 'signature_delta', signature } },
    { type: 'content_block_stop' },
  ])
})

test('a call that the limit cut is omitted from a complete response, and left incomplete in a stream', async () => {
  const cut = [...call(0, 'now', '{}'), ...call(1, 'weather', '{"ci')]
  const end = { finishReason: 'length', incompleteCalls: [1] } as const

  const data = await streamed(cut, end)

  expect(await whole(cut, end)).toMatchObject({ content: [use('0', 'now', {})], stop_reason: 'max_tokens' })
  expect(data.at(-4)).toMatchObject({ delta: { partial_json: '{"ci' } })
  expect(data.at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } })
})

test('`tool_use` is the stop reason if one call is complete and another incomplete', async () => {
  const pieces = [...call(0, 'now', '{}'), ...call(1, 'weather', '{"ci')]

  expect(await whole(pieces, { incompleteCalls: [1] })).toMatchObject({ stop_reason: 'tool_use' })
  expect(await whole(call(0, 'now', '{"'), { incompleteCalls: [0] })).toMatchObject({
    content: [],
    stop_reason: 'end_turn',
  })
})

test('`tool_use` is the stop reason if a stop sequence follows a call', async () => {
  const pieces = call(0, 'now', '{}')
  const end = { stopSequence: 'STOP' }
  const announced = { stop_reason: 'tool_use', stop_sequence: null }

  expect(await whole(pieces, end)).toMatchObject(announced)
  expect((await streamed(pieces, end)).at(-2)).toMatchObject({ delta: announced })
})

test('a cancelled generation throws an AbortError', async () => {
  async function* cancelled(): AsyncGenerator<GenerateEvent> {
    yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
  }

  await expect(renderMessage({ ...head, [Symbol.asyncIterator]: cancelled }, 'hidden')).rejects.toMatchObject(
    {
      name: 'AbortError',
    },
  )
})

test.each<[Parameters<typeof toThinkingDisplay>[0]['thinking'], ThinkingDisplay]>([
  [undefined, 'hidden'],
  [{ type: 'disabled' }, 'hidden'],
  [{ type: 'adaptive' }, 'shown'],
  [{ type: 'enabled', budget_tokens: 1_024, display: 'summarized' }, 'shown'],
  [{ type: 'adaptive', display: 'omitted' }, 'omitted'],
])('with `thinking` of %j, the display of reasoning is %s', (thinking, thoughts) => {
  expect(toThinkingDisplay({ thinking })).toBe(thoughts)
})
