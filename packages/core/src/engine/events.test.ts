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

test('the pieces of an answer are joined, and its end says the rest', async () => {
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

test('the stop sequence that ended an answer is kept', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { ...end, finishReason: 'stop', stopSequence: 'STOP' }
  }

  const answer = await collect(events())

  expect(answer).toMatchObject({ finishReason: 'stop', stopSequence: 'STOP' })
})

test('an answer without a word is an empty text', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield end
  }

  const answer = await collect(events())

  expect(answer.text).toBe('')
})

test('the tokens of the prompt are joined', async () => {
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

test('an answer that was cancelled rejects with an AbortError', async () => {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    yield { type: 'text', text: 'Hel', tokens: 1 }
  }

  const answer = collect(events())

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
})

test('an error on the way rejects with that error', async () => {
  const error = new Error('process ended')
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield start
    throw error
  }

  const answer = collect(events())

  await expect(answer).rejects.toBe(error)
})

test('nothing is read behind the end, and the source is closed', async () => {
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

test('the calls of an answer are those that are whole', async () => {
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
