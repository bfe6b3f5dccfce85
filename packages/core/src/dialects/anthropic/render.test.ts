import { expect, test } from 'vitest'
import type { FinishReason, GenerateEvent } from '../../engine/events.ts'
import type { Generation } from '../../generate.ts'
import { readEvents } from '../../testing/read-events.ts'
import { events, message, ping } from './render.ts'

const head = { id: 'abc', model: 'team/tiny', createdAt: new Date(1_700_000_000_000) }
const usage = { inputTokens: 10, reusedTokens: 4, outputTokens: 3 }
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

function generationOf(
  texts: readonly string[],
  end: { readonly reason: FinishReason; readonly stopSequence?: string } = { reason: 'stop' },
): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield { type: 'start', model: 'team/tiny', inputTokens: 10, reusedTokens: 4, fingerprint: 'fp_1' }
    for (const text of texts) yield { type: 'text', text, tokens: 1 }
    yield { type: 'end', ...end, usage, timings }
  }
  return { ...head, [Symbol.asyncIterator]: events }
}

/** The data of the frames, which have to be named by their types. */
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

const answerOf = (text: string) => ({ text, reason: 'stop', usage, timings, fingerprint: 'fp_1' }) as const

test('a whole answer is a message', () => {
  expect(message(generationOf([]), answerOf('Hello.'))).toEqual({
    ...common,
    content: [{ type: 'text', text: 'Hello.', citations: null }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    usage: wireUsage,
  })
})

test('a model that says nothing has no block, whole and streamed', async () => {
  const whole = message(generationOf([]), answerOf(''))
  const data = await dataOf(events(generationOf([])))

  expect(whole).toMatchObject({ content: [], stop_reason: 'end_turn' })
  expect(data.map((event) => (event as { type: string }).type)).toEqual([
    'message_start',
    'message_delta',
    'message_stop',
  ])
})

const endings: [{ reason: FinishReason; stopSequence?: string }, string, string | null][] = [
  [{ reason: 'stop' }, 'end_turn', null],
  [{ reason: 'stop', stopSequence: 'STOP' }, 'stop_sequence', 'STOP'],
  [{ reason: 'length' }, 'max_tokens', null],
  [{ reason: 'context' }, 'model_context_window_exceeded', null],
]

test.each(endings)('an answer that ends with %j stops by %s', (end, stop_reason, stop_sequence) => {
  const value = message(generationOf([]), { ...answerOf('a'), ...end })

  expect(value).toMatchObject({ stop_reason, stop_sequence })
})

test.each(endings)('a stream that ends with %j stops by %s', async (end, stop_reason, stop_sequence) => {
  const data = await dataOf(events(generationOf([], end)))

  expect(data.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason, stop_sequence } })
})

test('a stream says the message, its block, the pieces and the end', async () => {
  const { cache_creation, service_tier, ...lastUsage } = wireUsage

  const data = await dataOf(events(generationOf(['Hel', 'lo.'])))

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
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
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
  'the piece %j arrives as it is',
  async (text) => {
    const data = await dataOf(events(generationOf([text])))

    expect(data).toHaveLength(6)
    expect(data[2]).toMatchObject({ delta: { type: 'text_delta', text } })
  },
)

test('a sign of life is an event, too', () => {
  expect(ping).toBe('event: ping\ndata: {"type":"ping"}\n\n')
})

test('leaving the frames ends the answer', async () => {
  let closed = false
  async function* answer(): AsyncGenerator<GenerateEvent> {
    try {
      yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, fingerprint: 'fp_1' }
    } finally {
      closed = true
    }
  }
  const frames = events({ ...head, [Symbol.asyncIterator]: answer })
  await frames.next()

  await frames.return(undefined)

  expect(closed).toBe(true)
})
