import { expect, test } from 'vitest'
import { collect, type GenerateEvent, uncached } from './events.ts'

const start: GenerateEvent = {
  type: 'start',
  model: 'tiny',
  inputTokens: 3,
  reusedTokens: 1,
  ...uncached,
  fingerprint: 'fp_1',
}
const end = {
  type: 'end',
  finishReason: 'length',
  usage: { inputTokens: 3, reusedTokens: 1, ...uncached, outputTokens: 2 },
  timings: { loadMs: 1, promptMs: 2, generateMs: 3 },
} as const satisfies GenerateEvent

test('collect joins the pieces and adds the fields of the end event', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { type: 'text', text: 'Hel', tokens: 1 }
    yield { type: 'text', text: 'lo', tokens: 1 }
    yield end
  }

  const answer = await collect(events())

  expect(answer).toEqual({
    text: 'Hello',
    finishReason: 'length',
    usage: { inputTokens: 3, reusedTokens: 1, ...uncached, outputTokens: 2 },
    timings: { loadMs: 1, promptMs: 2, generateMs: 3 },
    fingerprint: 'fp_1',
  })
})

test('collect keeps the stop sequence', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { ...end, finishReason: 'stop', stopSequence: 'STOP' }
  }

  const answer = await collect(events())

  expect(answer).toMatchObject({ finishReason: 'stop', stopSequence: 'STOP' })
})

test('a generation without text collects to an empty text', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield end
  }

  const answer = await collect(events())

  expect(answer.text).toBe('')
})

test('collect joins prompt tokens', async () => {
  const token = { id: 1, text: 'a', bytes: [97], logprob: null, top: [] }
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { type: 'prompt', tokens: [token] }
    yield { type: 'prompt', tokens: [{ ...token, logprob: -1 }] }
    yield end
  }

  const answer = await collect(events())

  expect(answer).toMatchObject({ text: '', promptLogprobs: [{ logprob: null }, { logprob: -1 }] })
})

test('collect rejects with an AbortError when the generation was cancelled', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { type: 'text', text: 'Hel', tokens: 1 }
  }

  const answer = collect(events())

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
})

test('collect rejects with an error of the stream', async () => {
  const error = new Error('process ended')
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    throw error
  }

  const answer = collect(events())

  await expect(answer).rejects.toBe(error)
})

test('collect stops at the end event and closes the source', async () => {
  let closed = false
  async function* events(): AsyncGenerator<GenerateEvent> {
    try {
      yield end
      throw new Error('read too far')
    } finally {
      closed = true
    }
  }

  await collect(events())

  expect(closed).toBe(true)
})

test('collect keeps complete tool calls only', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { type: 'tool-call', index: 0, id: 'call_a', name: 'get_time' }
    yield { type: 'tool-arguments', index: 0, json: '{"zone":', tokens: 3 }
    yield { type: 'tool-arguments', index: 0, json: '"CET"}', tokens: 2 }
    yield { type: 'tool-call', index: 1, id: 'call_b', name: 'get_time' }
    yield { type: 'tool-arguments', index: 1, json: '{"zo', tokens: 1 }
    yield { ...end, incompleteCalls: [1] }
  }

  const answer = await collect(events())

  expect(answer.toolCalls).toEqual([{ id: 'call_a', name: 'get_time', arguments: '{"zone":"CET"}' }])
  expect(answer).not.toHaveProperty('incompleteCalls')
})
