import { afterEach, beforeEach, expect, test } from 'vitest'
import { sendJson, UpstreamServer } from '../../../../../../test/support/upstream-server.ts'
import type { Engine } from '../../engine.ts'
import { collect, uncached } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { upstreamEngine } from '../index.ts'

let server: UpstreamServer
let engine: Engine
beforeEach(async () => {
  server = await UpstreamServer.start()
  server.models = (response) => sendJson(response, { models: [] })
  engine = upstreamEngine({ url: server.url, api: 'modelmount', stallTimeoutMs: 1_000 })
})
afterEach(async () => {
  await engine.close()
  await server.close()
})

const request: GenerateRequest = {
  ...{ model: 'tiny', input: { kind: 'text', prompt: ['Hi'], template: false } },
}
const call = () => ({ signal: new AbortController().signal })
const usage = { ...uncached, inputTokens: 3, reusedTokens: 0 }
const start = { event: { type: 'start', model: 'tiny', fingerprint: 'fp', ...usage } }
const text = { event: { type: 'text', text: 'Hi', tokens: 1 } }
const end = {
  event: {
    ...{ type: 'end', finishReason: 'stop', usage: { ...usage, outputTokens: 1, isEstimated: true } },
    timings: { promptMs: 1, generateMs: 1, loadMs: 0 },
  },
}
const answerWith = (...lines: readonly (object | string)[]): void => {
  server.answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    for (const line of lines) response.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`)
    response.end()
  }
}
const answer = () => collect(engine.generate(request, call()))
const invalid = { code: 'upstream', details: { upstreamFailure: 'invalid' } }

test('events arrive as they are, between empty lines', async () => {
  answerWith(start, '\n\n', text, '\n', end)

  const { text: received, usage } = await answer()

  expect(received).toBe('Hi')
  expect(usage).toEqual(end.event.usage)
  expect(server.requests.at(-1)).toMatchObject({
    ...{ path: '/modelmount/v1/generate', body: request },
    headers: { 'x-modelmount-forwarded': expect.stringContaining('tenant=') },
  })
})

test.each<[what: string, lines: readonly (object | string)[]]>([
  ['no line', []],
  ['no end', [start, text]],
  ['half a line', [start, '{"event":{"ty']],
  ['a line that is no JSON', [start, 'hello\n']],
  ['an unknown line', [start, { other: 1 }]],
  ['an unknown event', [start, { event: { type: 'song' } }]],
  ['an event with a wrong field', [start, { event: { ...text.event, tokens: 'two' } }]],
  ['a result within an answer', [start, { result: 1 }]],
  ['an error of an unknown code', [start, { error: { code: 'strange', message: 'No.', details: {} } }]],
  ['an error that is none', [{ error: 'No.' }]],
])('an answer with %s is an invalid response', async (_what, lines) => {
  answerWith(...lines)

  await expect(answer()).rejects.toMatchObject(invalid)
})

test('an error of the other app arrives whole, and after the events before it', async () => {
  const details = { inputTokens: 9, contextSize: 8 }
  answerWith(start, text, { error: { code: 'context_length', message: 'Too long.', details } })
  const received: string[] = []

  const read = async () => {
    for await (const { type } of engine.generate(request, call())) received.push(type)
  }

  await expect(read()).rejects.toMatchObject({ code: 'context_length', message: 'Too long.', details })
  expect(received).toEqual(['start', 'text'])
})

test('a key of this app that is revoked during the call is a mistake in the setup, and not of the caller', async () => {
  answerWith(start, text, { error: { code: 'authentication', message: 'Invalid API key.', details: {} } })

  await expect(answer()).rejects.toMatchObject({
    ...{ code: 'upstream', details: { setup: true, upstreamFailure: 'refused' } },
    message: 'The upstream server rejected the API key of this app.',
  })
})

test('an impossible token keeps its logarithm of zero', async () => {
  const token = { id: 1, text: 'Hi', bytes: [72, 105], logprob: Number.NEGATIVE_INFINITY }
  answerWith(start, { event: { ...text.event, logprobs: [{ ...token, top: [token] }] } }, end)

  const events = []
  for await (const event of engine.generate(request, call())) events.push(event)

  expect(events[1]).toEqual({ ...text.event, logprobs: [{ ...token, top: [token] }] })
})

test.each<[what: string, lines: readonly (object | string)[]]>([
  ['too few vectors', [{ part: ['AACAPw=='] }, { result: { inputTokens: 2, loadMs: 0, totalMs: 1 } }]],
  ['numbers as vectors', [{ part: [1, 2] }, { result: { inputTokens: 2, loadMs: 0, totalMs: 1 } }]],
  ['no counts', [{ part: ['AACAPw==', 'AACAPw=='] }, { result: null }]],
  ['no result', [{ part: ['AACAPw==', 'AACAPw=='] }]],
])('embeddings with %s are an invalid response', async (_what, lines) => {
  answerWith(...lines)

  await expect(engine.embed({ model: 'bert', inputs: ['a', 'b'] }, call())).rejects.toMatchObject(invalid)
})

test('tokens count when the other app has evaluated them, even if the call then fails', async () => {
  answerWith(
    { inputTokens: 3 },
    { inputTokens: 4 },
    { error: { code: 'internal', message: 'No.', details: {} } },
  )
  let counted = 0
  const onInputTokens = (tokens: number): void => {
    counted += tokens
  }

  const failing = engine.embed({ model: 'bert', inputs: ['a', 'b'] }, { ...call(), onInputTokens })

  await expect(failing).rejects.toMatchObject({ code: 'internal' })
  expect(counted).toBe(7)
})

test('a server without this API is a mistake in the setup', async () => {
  server.models = (response) => sendJson(response, { error: 'no such path' }, 404)

  await expect(engine.findModel?.('tiny')).rejects.toMatchObject({
    ...{ code: 'upstream', details: { setup: true } },
    message: 'The upstream server does not serve the API modelmount of this version.',
  })
})

test('a list that is none is an invalid response', async () => {
  server.models = (response) => sendJson(response, { data: [] })

  await expect(engine.findModel?.('tiny')).rejects.toMatchObject(invalid)
})
