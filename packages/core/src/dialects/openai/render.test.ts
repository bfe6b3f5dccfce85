import { expect, test } from 'vitest'
import type { Generation } from '../../calls/generation.ts'
import { type FinishReason, type GenerateEvent, uncached } from '../../engine/events.ts'
import { readEvents } from '../../testing/read-events.ts'
import { renderChunks, renderCompletion } from './render.ts'
import type { ChatCompletionRequest } from './schema.ts'

const head = { id: 'abc', model: 'team/tiny', createdAt: new Date(1_700_000_000_999), limits: [] }
const usage = { inputTokens: 10, reusedTokens: 4, ...uncached, outputTokens: 3 }
const timings = { loadMs: 0, promptMs: 1, generateMs: 2 }
const body: ChatCompletionRequest = { model: 'team/tiny', messages: [{ role: 'user', content: 'Hi' }] }

/** The usage in the format of the API. */
const wireUsage = {
  prompt_tokens: 10,
  completion_tokens: 3,
  total_tokens: 13,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
}

function generationOf(
  content: readonly (string | GenerateEvent)[],
  finishReason: FinishReason = 'stop',
): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield {
      type: 'start',
      model: 'team/tiny',
      inputTokens: 10,
      reusedTokens: 4,
      ...uncached,
      fingerprint: 'fp_1',
    }
    for (const part of content)
      yield typeof part === 'string' ? { type: 'text', text: part, tokens: 1 } : part
    yield { type: 'end', finishReason, usage, timings }
  }
  return { ...head, [Symbol.asyncIterator]: events }
}

/** Returns the data of the frames. Parses all data except `[DONE]`. */
async function dataOf(frames: AsyncIterable<string>): Promise<unknown[]> {
  let text = ''
  for await (const frame of frames) text += frame
  const data: unknown[] = []
  for await (const event of readEvents(text))
    data.push(event.data === '[DONE]' ? '[DONE]' : JSON.parse(event.data))
  return data
}

test('a complete response is a chat completion', () => {
  const answer = { text: 'Hello.', finishReason: 'stop', usage, timings, fingerprint: 'fp_1' } as const

  const value = renderCompletion([{ generation: generationOf([]), answer }], body)

  expect(value).toEqual({
    id: 'chatcmpl-abc',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'team/tiny',
    system_fingerprint: 'fp_1',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello.', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: wireUsage,
  })
})

const reasons: [FinishReason, string][] = [
  ['stop', 'stop'],
  ['length', 'length'],
  ['context', 'length'],
  ['tool-calls', 'tool_calls'],
]

test.each(reasons)('an answer that ends with %s has the finish reason %s', (reason, finish) => {
  const answer = { text: '', finishReason: reason, usage, timings, fingerprint: 'fp_1' }

  const value = renderCompletion([{ generation: generationOf([]), answer }], body)

  expect(value).toMatchObject({ choices: [{ finish_reason: finish }] })
})

test.each(reasons)('a stream that ends with %s has the finish reason %s', async (reason, finish) => {
  const data = await dataOf(renderChunks([generationOf([], reason)], body))

  expect(data.at(-2)).toMatchObject({ choices: [{ delta: {}, finish_reason: finish }] })
})

test('a stream has the role, the pieces, the finish reason and [DONE]', async () => {
  const common = {
    id: 'chatcmpl-abc',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'team/tiny',
    system_fingerprint: 'fp_1',
  }
  const chunk = (delta: object, finish: string | null = null): object => ({
    ...common,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  })

  const data = await dataOf(renderChunks([generationOf(['Hel', 'lo.'])], body))

  expect(data).toEqual([
    chunk({ role: 'assistant', content: '', refusal: null }),
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo.' }),
    chunk({}, 'stop'),
    '[DONE]',
  ])
})

const toolCall: GenerateEvent = { type: 'tool-call', index: 0, id: 'call_1', name: 'f' }

test.each<[before: string, events: readonly (string | GenerateEvent)[], content: string | null]>([
  ['a tool call', [toolCall], null],
  ['reasoning', [{ type: 'reasoning', text: 'Hm.', tokens: 1 }, toolCall], null],
  ['text', ['Hi', toolCall], ''],
  ['the end', [], ''],
])(
  'in the first chunk before %s, the content is null unless it is text',
  async (_before, events, content) => {
    const [first] = await dataOf(renderChunks([generationOf(events)], body))

    expect(first).toMatchObject({ choices: [{ delta: { role: 'assistant', content } }] })
  },
)

test('with include_usage every chunk has a usage, and the last chunk has the counts', async () => {
  const data = await dataOf(
    renderChunks([generationOf(['Hi'])], { ...body, stream_options: { include_usage: true } }),
  )

  expect(data).toMatchObject([
    { usage: null },
    { usage: null, choices: [{ delta: { content: 'Hi' } }] },
    { usage: null, choices: [{ finish_reason: 'stop' }] },
    { choices: [], usage: wireUsage, id: 'chatcmpl-abc', object: 'chat.completion.chunk' },
    '[DONE]',
  ])
})

test.each([[{}], [{ stream_options: {} }], [{ stream_options: { include_usage: false } }]])(
  'with %j no chunk has a usage',
  async (fields) => {
    const data = await dataOf(renderChunks([generationOf(['Hi'])], { ...body, ...fields }))

    expect(data).toHaveLength(4)
    for (const chunk of data) expect(chunk).not.toHaveProperty('usage')
  },
)

test.each(['"quoted" \\ and \n\nbroken\r\n', 'data: [DONE]\n\n', '\u2028 ü 😀 \u0000', '}],"x":1'])(
  'the text %j arrives unchanged',
  async (text) => {
    const data = await dataOf(renderChunks([generationOf([text])], body))

    expect(data).toHaveLength(4)
    expect(data[1]).toMatchObject({ choices: [{ delta: { content: text } }] })
  },
)

test('each frame is one event, rendered when it is pulled', async () => {
  let made = 0
  async function* events(): AsyncGenerator<GenerateEvent> {
    made++
    yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
    made++
    yield { type: 'text', text: 'a', tokens: 1 }
    made++
    yield { type: 'text', text: 'b', tokens: 1 }
  }
  const frames = renderChunks([{ ...head, [Symbol.asyncIterator]: events }], body)

  const opened = await frames.next()
  const { value: frame } = await frames.next()

  expect(opened.value).toMatch(/^data: \{.*\}\n\n$/)
  expect(frame).toMatch(/^data: \{.*\}\n\n$/)
  expect(made).toBe(2)
})

test('ending the frames early cancels the generation', async () => {
  let closed = false
  async function* events(): AsyncGenerator<GenerateEvent> {
    try {
      yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
    } finally {
      closed = true
    }
  }
  const frames = renderChunks([{ ...head, [Symbol.asyncIterator]: events }], body)
  await frames.next()

  await frames.return(undefined)

  expect(closed).toBe(true)
})

test('the finish reason is tool_calls if a stop sequence follows a call', async () => {
  const call = { id: 'call_1', name: 'f', arguments: '{}' }
  const answer = {
    text: '',
    toolCalls: [call],
    finishReason: 'stop',
    usage,
    timings,
    fingerprint: 'fp_1',
  } as const
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
    yield { type: 'tool-call', index: 0, id: 'call_1', name: 'f' }
    yield { type: 'tool-arguments', index: 0, json: '{}', tokens: 2 }
    yield { type: 'end', finishReason: 'stop', stopSequence: 'STOP', usage, timings }
  }

  const whole = renderCompletion([{ generation: generationOf([]), answer }], body)
  const data = await dataOf(renderChunks([{ ...head, [Symbol.asyncIterator]: events }], body))

  expect(whole).toMatchObject({ choices: [{ message: { content: null }, finish_reason: 'tool_calls' }] })
  expect(data.at(-2)).toMatchObject({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] })
})

test.each(['"quoted" \\ \n', '\u2028 ü 😀', '}],"x":1'])(
  'arguments and names like %j arrive unchanged',
  async (text) => {
    async function* events(): AsyncGenerator<GenerateEvent> {
      yield { type: 'start', model: 'm', inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_1' }
      yield { type: 'tool-call', index: 0, id: text, name: text }
      yield { type: 'tool-arguments', index: 0, json: text, tokens: 2 }
      yield { type: 'reasoning', text, tokens: 1 }
    }

    const data = await dataOf(renderChunks([{ ...head, [Symbol.asyncIterator]: events }], body))

    expect(data.slice(1)).toMatchObject([
      { choices: [{ delta: { tool_calls: [{ id: text, function: { name: text, arguments: '' } }] } }] },
      { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] },
      { choices: [{ delta: { reasoning_content: text } }] },
    ])
  },
)

test('reused tokens count as part of the prompt', async () => {
  const cached = { ...usage, cacheReadTokens: 3, cacheWriteTokens: { '5m': 2, '1h': 1 } }
  const answer = { text: '', finishReason: 'stop', usage: cached, timings, fingerprint: 'fp_1' } as const

  expect(renderCompletion([{ generation: generationOf([]), answer }], body)).toMatchObject({
    usage: wireUsage,
  })
})
