import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { FinishReason, GenerateEvent } from '../../engine/events.ts'
import type { Generation } from '../../generate.ts'
import { acknowledgement, asMessage, asResponse, completion, heartbeat, lines, rendered } from './render.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.006Z') })
})
afterEach(() => {
  vi.useRealTimers()
})

const head = { model: 'team/tiny', created_at: '2026-01-02T03:04:05.006Z' }
const usage = { inputTokens: 10, reusedTokens: 4, outputTokens: 3 }
const timings = { loadMs: 0.5, promptMs: 1, generateMs: 2.5 }
const answer = { text: 'Hello.', reason: 'stop', usage, timings, fingerprint: 'fp_1' } as const

/** How an answer ends, on the wire, when it took two milliseconds. */
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

type Piece = Extract<GenerateEvent, { type: 'text' | 'reasoning' }>

function generationOf(pieces: readonly Piece[], tokens?: readonly number[]): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield { type: 'start', model: 'team/tiny', inputTokens: 10, reusedTokens: 4, fingerprint: 'fp_1' }
    yield* pieces
    yield { type: 'end', reason: 'stop', usage, timings, ...(tokens && { tokens }) }
  }
  return { id: 'abc', model: 'team/tiny', createdAt: new Date(), [Symbol.asyncIterator]: events }
}
const said = (text: string): Piece => ({ type: 'text', text, tokens: 1 })
const thought = (text: string): Piece => ({ type: 'reasoning', text, tokens: 1 })

async function all(made: AsyncIterable<string>): Promise<string[]> {
  const read: string[] = []
  for await (const line of made) read.push(line)
  return read
}
const twoMsAgo = (): number => performance.now() - 2

test('a whole answer to a conversation is a message', () => {
  expect(completion({ model: 'team/tiny' }, answer, twoMsAgo(), asMessage)).toEqual({
    ...head,
    message: { role: 'assistant', content: 'Hello.' },
    ...ending,
  })
})

test('a whole answer to a prompt is a response, with the tokens that continue it', () => {
  const value = completion({ model: 'team/tiny' }, { ...answer, tokens: [1, 2] }, twoMsAgo(), asResponse)

  expect(value).toEqual({ ...head, response: 'Hello.', ...ending, context: [1, 2] })
})

test('thoughts stand beside the text, and have no key where there are none', () => {
  expect(asMessage('5', '2 + 3')).toEqual({
    message: { role: 'assistant', content: '5', thinking: '2 + 3' },
  })
  expect(asResponse('5', '2 + 3')).toEqual({ response: '5', thinking: '2 + 3' })
  expect(asMessage('5', '')).toEqual({ message: { role: 'assistant', content: '5' } })
  expect(asResponse('5')).toEqual({ response: '5' })
})

test.each<[FinishReason, string]>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['context', 'length'],
])('an answer that ends with %s is done with %s', (reason, done_reason) => {
  const value = completion({ model: 'm' }, { ...answer, reason }, 0, asMessage)

  expect(value).toMatchObject({ done: true, done_reason })
})

test('no duration is 0, since clients divide by them', () => {
  const none = { loadMs: 0, promptMs: 0, generateMs: 0 }

  const value = completion({ model: 'm' }, { ...answer, timings: none }, performance.now(), asMessage)

  expect(value).toMatchObject({
    total_duration: 1,
    load_duration: 1,
    prompt_eval_duration: 1,
    eval_duration: 1,
  })
})

test('a stream says piece by piece, and how it was in its last line only', async () => {
  const made = await all(
    lines(generationOf([thought('hm'), said('Hel'), said('lo.')], [1, 2]), twoMsAgo(), asMessage),
  )

  expect(made.map((line) => JSON.parse(line))).toEqual([
    { ...head, message: { role: 'assistant', content: '', thinking: 'hm' }, done: false },
    { ...head, message: { role: 'assistant', content: 'Hel' }, done: false },
    { ...head, message: { role: 'assistant', content: 'lo.' }, done: false },
    { ...head, message: { role: 'assistant', content: '' }, ...ending, context: [1, 2] },
  ])
})

test.each(['"quoted" \\ and \n\nbroken\r\n', '\u2028 ü 😀 \u0000', '"}\n{"done":true}'])(
  'the piece %j is one line',
  async (text) => {
    const [line = ''] = await all(lines(generationOf([said(text)]), 0, asResponse))

    expect(line.indexOf('\n')).toBe(line.length - 1)
    expect(JSON.parse(line)).toEqual({ ...head, response: text, done: false })
  },
)

test('an answer without text has a last line all the same', async () => {
  const made = await all(lines(generationOf([]), 0, asResponse))

  expect(made).toHaveLength(1)
  expect(JSON.parse(made[0] ?? '')).toMatchObject({ response: '', done: true })
})

test('leaving the lines ends the answer', async () => {
  let closed = false
  async function* events(): AsyncGenerator<GenerateEvent> {
    try {
      yield said('a')
    } finally {
      closed = true
    }
  }
  const made = lines({ ...generationOf([]), [Symbol.asyncIterator]: events }, 0, asMessage)
  await made.next()

  await made.return(undefined)

  expect(closed).toBe(true)
})

test('a heartbeat is a piece that says nothing', () => {
  const line = heartbeat('tiny', asMessage)

  expect(line).toMatch(/^\{.*\}\n$/)
  expect(JSON.parse(line)).toEqual({
    ...head,
    model: 'tiny',
    message: { role: 'assistant', content: '' },
    done: false,
  })
})

test.each(['load', 'unload'] as const)('the %s of a model is one object without counts', (reason) => {
  expect(acknowledgement('team/tiny', reason, asResponse)).toEqual({
    ...head,
    response: '',
    done: true,
    done_reason: reason,
  })
})

test('a prompt that is only to be seen is no answer', () => {
  expect(rendered('team/tiny', '<user>Hi', asMessage)).toEqual({
    ...head,
    message: { role: 'assistant', content: '' },
    done: false,
    _debug_info: { rendered_template: '<user>Hi' },
  })
})
