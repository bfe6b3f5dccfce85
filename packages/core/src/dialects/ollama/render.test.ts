import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Generation } from '../../calls/generation.ts'
import {
  type FinishReason,
  type GenerateEvent,
  type SampledToken,
  type TokenLogprob,
  uncached,
} from '../../engine/events.ts'
import {
  type ContentFormatter,
  formatMessage,
  formatResponse,
  renderAcknowledgement,
  renderCompletion,
  renderHeartbeat,
  renderLines,
  renderPrompt,
} from './render.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.006Z') })
})
afterEach(() => {
  vi.useRealTimers()
})

const head = { model: 'team/tiny', created_at: '2026-01-02T03:04:05.006Z' }
const usage = { inputTokens: 10, reusedTokens: 4, ...uncached, outputTokens: 3 }
const timings = { loadMs: 0.5, promptMs: 1, generateMs: 2.5 }

/** Last fields of a response that took two milliseconds. */
const ending = {
  done: true,
  done_reason: 'stop',
  total_duration: 2_000_000,
  load_duration: 500_000,
  prompt_eval_count: 10,
  prompt_eval_duration: 1_000_000,
  eval_count: 3,
  eval_duration: 2_500_000,
}

type Said = Exclude<GenerateEvent, { type: 'start' | 'end' }>
type End = Extract<GenerateEvent, { type: 'end' }>

function generationOf(pieces: readonly Said[], end: Partial<End> = {}): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield {
      type: 'start',
      model: 'team/tiny',
      inputTokens: 10,
      reusedTokens: 4,
      ...uncached,
      fingerprint: 'fp_1',
    }
    yield* pieces
    yield { type: 'end', finishReason: 'stop', usage, timings, ...end }
  }
  return { id: 'abc', model: 'team/tiny', createdAt: new Date(), limits: [], [Symbol.asyncIterator]: events }
}
const said = (text: string, logprobs?: readonly SampledToken[]): Said => ({
  type: 'text',
  text,
  tokens: 1,
  ...(logprobs && { logprobs }),
})
const thought = (text: string, logprobs?: readonly SampledToken[]): Said =>
  ({
    ...said(text, logprobs),
    type: 'reasoning',
  }) as Said
const called = (index: number, name: string, ...pieces: readonly string[]): readonly Said[] => [
  { type: 'tool-call', index, id: `call_${name}`, name },
  ...pieces.map((json) => ({ type: 'tool-arguments' as const, index, json, tokens: 1 })),
]

async function all(made: AsyncIterable<string>): Promise<string[]> {
  const read: string[] = []
  for await (const line of made) read.push(line)
  return read
}
const linesOf = async (pieces: readonly Said[], end?: Partial<End>) =>
  (await all(renderLines(generationOf(pieces, end), lineOptions(twoMsAgo(), formatMessage)))).map((line) =>
    JSON.parse(line),
  )
const wholeOf = (pieces: readonly Said[], end?: Partial<End>, piece = formatMessage) =>
  renderCompletion(generationOf(pieces, end), lineOptions(twoMsAgo(), piece))
const twoMsAgo = (): number => performance.now() - 2

const lineOptions = (startedAt: number, formatContent: ContentFormatter, hasTimings = false) => ({
  startedAt,
  formatContent,
  hasTimings,
})

test('a complete chat response has a message', async () => {
  expect(await wholeOf([said('Hel'), said('lo.')])).toEqual({
    ...head,
    message: { role: 'assistant', content: 'Hello.' },
    ...ending,
  })
})

test('a complete generate response has the context for a continuation', async () => {
  const value = await wholeOf([thought('hm'), said('Hello.')], { tokens: [1, 2] }, formatResponse)

  expect(value).toEqual({ ...head, response: 'Hello.', thinking: 'hm', ...ending, context: [1, 2] })
})

test('reasoning and calls have fields beside the text, which are omitted if empty', () => {
  expect(formatMessage({ text: '5', thinking: '2 + 3', calls: [{}] })).toEqual({
    message: { role: 'assistant', content: '5', thinking: '2 + 3', tool_calls: [{}] },
  })
  expect(formatResponse({ text: '5', thinking: '2 + 3' })).toEqual({ response: '5', thinking: '2 + 3' })
  expect(formatMessage({ text: '5', thinking: '', calls: [] })).toEqual({
    message: { role: 'assistant', content: '5' },
  })
  expect(formatResponse({})).toEqual({ response: '' })
})

test.each<[FinishReason, string]>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['context', 'length'],
  ['tool-calls', 'stop'],
])('an answer that ends with %s has the done_reason %s', async (finishReason, done_reason) => {
  expect(await wholeOf([said('Hi')], { finishReason })).toMatchObject({ done: true, done_reason })
})

test('no duration is 0, since clients divide by durations', async () => {
  const none = { loadMs: 0, promptMs: 0, generateMs: 0 }

  const value = await renderCompletion(
    generationOf([], { timings: none }),
    lineOptions(performance.now(), formatMessage),
  )

  expect(value).toMatchObject({
    total_duration: 1,
    load_duration: 1,
    prompt_eval_duration: 1,
    eval_duration: 1,
  })
})

test('only the last line of a stream has counts', async () => {
  expect(await linesOf([thought('hm'), said('Hel'), said('lo.')], { tokens: [1, 2] })).toEqual([
    { ...head, message: { role: 'assistant', content: '', thinking: 'hm' }, done: false },
    { ...head, message: { role: 'assistant', content: 'Hel' }, done: false },
    { ...head, message: { role: 'assistant', content: 'lo.' }, done: false },
    { ...head, message: { role: 'assistant', content: '' }, ...ending, context: [1, 2] },
  ])
})

const call = (index: number, name: string, values: object) => ({
  id: `call_${name}`,
  function: { index, name, arguments: values },
})

test('each complete call is one line, with its arguments as an object', async () => {
  const calls = [...called(0, 'a', '{"x":', '[1]}'), ...called(1, 'b', '{}')]

  const made = await linesOf([said('Wait.'), ...calls, said('Done.')], { finishReason: 'tool-calls' })

  expect(made.map(({ message }) => message)).toEqual([
    { role: 'assistant', content: 'Wait.' },
    { role: 'assistant', content: '', tool_calls: [call(0, 'a', { x: [1] })] },
    { role: 'assistant', content: '', tool_calls: [call(1, 'b', {})] },
    { role: 'assistant', content: 'Done.' },
    { role: 'assistant', content: '' },
  ])
  expect(made.map(({ done }) => done)).toEqual([false, false, false, false, true])
  expect(made.at(-1)).toMatchObject({ done_reason: 'stop' })
})

test('a complete response has all calls beside its text', async () => {
  const calls = [...called(0, 'a', '{"x":', '[1]}'), ...called(1, 'b', '{}')]

  expect(await wholeOf([said('Wait.'), ...calls], { finishReason: 'tool-calls' })).toEqual({
    ...head,
    message: {
      role: 'assistant',
      content: 'Wait.',
      tool_calls: [call(0, 'a', { x: [1] }), call(1, 'b', {})],
    },
    ...ending,
  })
})

test('an incomplete call is omitted', async () => {
  const pieces = [...called(0, 'a', '{"x'), ...called(1, 'b', '{"y":1}'), ...called(2, 'c')]
  const end = { finishReason: 'length', incompleteCalls: [0, 2] } as const
  const only = { role: 'assistant', content: '', tool_calls: [call(0, 'b', { y: 1 })] }

  const made = await linesOf(pieces, end)

  expect(await wholeOf(pieces, end)).toMatchObject({ message: only, done_reason: 'length' })
  expect(made.map(({ message }) => message)).toEqual([only, { role: 'assistant', content: '' }])
})

const tokenOf = (text: string, logprob: number): TokenLogprob => ({
  id: 7,
  text,
  bytes: [...Buffer.from(text)],
  logprob,
})
const drawn = (text: string, ...top: readonly TokenLogprob[]): SampledToken => ({
  ...tokenOf(text, -0.5),
  top,
})
const told = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] })

test('each line has its logprobs, and a complete response has all, reasoning first', async () => {
  const pieces = [
    thought('hm', [drawn('hm')]),
    said('é!', [drawn('é', tokenOf('e', -0.1), tokenOf('é', -0.5)), drawn('!')]),
  ]
  const [first, ...others] = [
    told('hm', -0.5),
    { ...told('é', -0.5), top_logprobs: [told('e', -0.1), told('é', -0.5)] },
    told('!', -0.5),
  ]

  expect((await linesOf(pieces)).map(({ logprobs }) => logprobs)).toEqual([[first], others, undefined])
  expect(await wholeOf(pieces)).toMatchObject({ logprobs: [first, ...others] })
  expect(await wholeOf([said('é!')])).not.toHaveProperty('logprobs')
})

test.each(['"quoted" \\ and \n\nbroken\r\n', '\u2028 ü 😀 \u0000', '"}\n{"done":true}'])(
  'the text %j is rendered as one line',
  async (text) => {
    const [line = ''] = await all(renderLines(generationOf([said(text)]), lineOptions(0, formatResponse)))

    expect(line.indexOf('\n')).toBe(line.length - 1)
    expect(JSON.parse(line)).toEqual({ ...head, response: text, done: false })
  },
)

test('an answer without text also has a last line', async () => {
  const made = await all(renderLines(generationOf([]), lineOptions(0, formatResponse)))

  expect(made).toHaveLength(1)
  expect(JSON.parse(made[0] ?? '')).toMatchObject({ response: '', done: true })
})

test('ending the lines early cancels the generation', async () => {
  let closed = false
  async function* events(): AsyncGenerator<GenerateEvent> {
    try {
      yield said('a')
    } finally {
      closed = true
    }
  }
  const made = renderLines(
    { ...generationOf([]), [Symbol.asyncIterator]: events },
    lineOptions(0, formatMessage),
  )
  await made.next()

  await made.return(undefined)

  expect(closed).toBe(true)
})

test('a heartbeat is a line without content', () => {
  const line = renderHeartbeat('tiny', formatMessage)

  expect(line).toMatch(/^\{.*\}\n$/)
  expect(JSON.parse(line)).toEqual({
    ...head,
    model: 'tiny',
    message: { role: 'assistant', content: '' },
    done: false,
  })
})

test.each(['load', 'unload'] as const)('the response to %s is one object without counts', (reason) => {
  expect(renderAcknowledgement('team/tiny', reason, formatResponse)).toEqual({
    ...head,
    response: '',
    done: true,
    done_reason: reason,
  })
})

test('a rendered prompt is not marked as done', () => {
  expect(renderPrompt('team/tiny', '<user>Hi', formatMessage)).toEqual({
    ...head,
    message: { role: 'assistant', content: '' },
    done: false,
    _debug_info: { rendered_template: '<user>Hi' },
  })
})

test('reused tokens count as part of the prompt', async () => {
  const cached = { ...usage, cacheReadTokens: 3, cacheWriteTokens: { '5m': 2, '1h': 1 } }

  expect(await wholeOf([], { usage: cached })).toMatchObject({ prompt_eval_count: 10 })
})
