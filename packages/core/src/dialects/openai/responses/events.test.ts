import { expect, test } from 'vitest'
import type { Generation } from '../../../calls/generation.ts'
import { type FinishReason, type GenerateEvent, uncached } from '../../../engine/events.ts'
import { LlmError } from '../../../errors.ts'
import { readEvents } from '../../../testing/read-events.ts'
import { ResponseEvents } from './events.ts'

const usage = { inputTokens: 10, reusedTokens: 4, ...uncached, outputTokens: 3 }
const body = { model: 'team/tiny', input: [] }

function generationOf(said: readonly GenerateEvent[]): Generation {
  async function* events(): AsyncGenerator<GenerateEvent> {
    yield* said
  }
  const createdAt = new Date(1_700_000_000_999)
  return { id: 'abc', model: 'team/tiny', createdAt, limits: [], [Symbol.asyncIterator]: events }
}
const end = (finishReason: FinishReason): GenerateEvent => ({
  type: 'end',
  finishReason,
  usage,
  timings: { loadMs: 0, promptMs: 1, generateMs: 2 },
})
const text: GenerateEvent = { type: 'text', text: 'Hello', tokens: 1 }

async function typesOf(frames: readonly string[]): Promise<readonly unknown[]> {
  const types: unknown[] = []
  for await (const { event, data } of readEvents(frames.join(''))) {
    const { sequence_number: number } = JSON.parse(data) as { sequence_number: number }
    types.push([event, number])
  }
  return types
}

test('reused tokens are cached input tokens, and reasoning tokens are output tokens', async () => {
  const thought: GenerateEvent = { type: 'reasoning', text: 'Hm.', tokens: 2 }

  const response = await new ResponseEvents(generationOf([thought, text, end('stop')]), body).collect()

  expect(response).toMatchObject({
    id: 'resp_abc',
    created_at: 1_700_000_000,
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 13,
    },
  })
})

test.each<[FinishReason, string]>([
  ['stop', 'completed'],
  ['tool-calls', 'completed'],
  ['length', 'incomplete'],
  ['context', 'incomplete'],
])('an answer that ends with %s has the status %s', async (reason, status) => {
  const response = await new ResponseEvents(generationOf([text, end(reason)]), body).collect()

  expect(response).toMatchObject({ status, output: [{ status }] })
})

test('text after a call is a separate message', async () => {
  const call: GenerateEvent = { type: 'tool-call', index: 0, id: 'call_a', name: 'f' }
  const json: GenerateEvent = { type: 'tool-arguments', index: 0, json: '{}', tokens: 1 }

  const response = await new ResponseEvents(
    generationOf([text, call, json, text, end('stop')]),
    body,
  ).collect()

  expect(response).toMatchObject({
    output: [
      { id: 'msg_abc_0', content: [{ text: 'Hello' }] },
      { id: 'fc_abc_1', arguments: '{}', status: 'completed' },
      { id: 'msg_abc_2', content: [{ text: 'Hello' }] },
    ],
  })
})

test('a generation without an end event throws an AbortError', async () => {
  const response = new ResponseEvents(generationOf([text]), body).collect()

  await expect(response).rejects.toMatchObject({ name: 'AbortError' })
})

test('a failure before the start is sent after the first two events', async () => {
  const events = new ResponseEvents(generationOf([]), body)
  const frames: string[] = []

  for await (const frame of events.frames()) frames.push(frame)
  frames.push(events.fail(new LlmError('overloaded', 'Later.')))

  expect(await typesOf(frames)).toEqual([
    ['response.created', 0],
    ['response.in_progress', 1],
    ['response.failed', 2],
  ])
  expect(frames.at(-1)).toContain('"error":{"code":"server_overloaded","message":"Later."}')
})
