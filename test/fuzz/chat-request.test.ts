/**
 * Random chat completion requests. Each gets a completion or an OpenAI error within 2 s.
 * Memory must not grow.
 */
import { Agent, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLlm, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import {
  anyBytes,
  anyJson,
  anyValue,
  asJson,
  list,
  mostly,
  numbers,
  object,
  oneOf,
  text,
  type Values,
} from './json.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const limitMs = 2_000
const models = emptyFolder()
const agent = new Agent({ keepAlive: true })
const scripted = await createLlm({ engine: forgetful(), models })
const local = await createLlm({ models })
let scriptedServer: Listening
let localServer: Listening

beforeAll(async () => {
  scriptedServer = await listen(toNodeHandler(routesFor(), scripted))
  localServer = await listen(toNodeHandler(routesFor(), local))
  await local.chat('Hello', { model: 'tiny', maxTokens: 1 })
})

afterAll(async () => {
  agent.destroy()
  await Promise.all([scriptedServer, localServer].map((server) => server.close()))
  await Promise.all([scripted, local].map((llm) => llm.close()))
})

/** Returns a scripted engine that does not record requests, because records would look like a memory leak. */
function forgetful(): Engine {
  const { generate: _, ...rest } = scriptedEngine('')
  return { ...rest, generate: (request, call) => scriptedEngine('Hello there.').generate(request, call) }
}

const part = fc
  .tuple(mostly(fc.constant('"text"')), mostly(text))
  .map(([type, text]) => object([...Object.entries({ type, text })]))
const message = fc
  .tuple(
    mostly(fc.constantFrom('"user"', '"system"', '"developer"', '"assistant"')),
    mostly(fc.oneof(text, list(mostly(part)))),
    fc.array(fc.tuple(fc.constantFrom('name', 'refusal', 'tool_calls', '__proto__'), anyValue), {
      maxLength: 1,
    }),
  )
  .map(([role, content, others]) => object([...Object.entries({ role, content }), ...others]))

const tool = fc
  .tuple(mostly(text), mostly(fc.constant('{"type":"object"}')))
  .map(([name, parameters]) => object([...Object.entries({ name, parameters })]))
  .map((definition) => object([...Object.entries({ type: '"function"', function: definition })]))

/** Likely valid values for every field. */
const fields: Values = {
  stream: asJson(fc.boolean()),
  stream_options: asJson(fc.record({ include_usage: fc.boolean() }, { requiredKeys: [] })),
  max_tokens: asJson(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
  temperature: numbers(0, 2),
  top_p: numbers(0, 1),
  stop: fc.oneof(text, list(text)),
  seed: asJson(fc.maxSafeInteger()),
  frequency_penalty: numbers(-2, 2),
  presence_penalty: numbers(-2, 2),
  logit_bias: asJson(
    fc.dictionary(
      fc.oneof(fc.nat().map(String), fc.string({ minLength: 1, maxLength: 20 })),
      fc.integer({ min: -100, max: 100 }),
    ),
  ),
  top_k: asJson(fc.nat()),
  min_p: numbers(0, 1),
  repeat_penalty: numbers(0.01, 100),
  n: fc.constant('1'),
  logprobs: asJson(fc.boolean()),
  top_logprobs: asJson(fc.nat(20)),
  response_format: fc.constantFrom('{"type":"text"}', '{"type":"json_object"}'),
  tools: list(tool),
  tool_choice: fc.constantFrom('"none"', '"auto"'),
  parallel_tool_calls: asJson(fc.boolean()),
  reasoning_effort: fc.constantFrom('"none"', '"low"', '"max"'),
  chat_template_kwargs: asJson(fc.dictionary(fc.string(), fc.string())),
  functions: fc.constant('[]'),
  function_call: fc.constantFrom('"none"', '"auto"'),
  modalities: fc.constant('["text"]'),
  metadata: anyValue,
  ['__proto__']: anyValue,
}
/** A valid request with a few random values. The last field is fixed, so that answers stay short. */
const almostValid = fc
  .tuple(
    mostly(fc.constant('"tiny"'), 50),
    mostly(list(mostly(message, 50)), 50),
    fc.array(oneOf(fields, 5), { maxLength: 5 }),
  )
  .map(([model, messages, others]) =>
    object([...Object.entries({ model, messages }), ...others, ['max_completion_tokens', '4']]),
  )
/** Resolves with the number of accepted requests. A run in which all requests are rejected proves nothing. */
async function run(
  server: () => Listening,
  body: fc.Arbitrary<string | Uint8Array>,
  numRuns: number,
): Promise<number> {
  let answered = 0
  await fc.assert(
    fc.asyncProperty(body, async (bytes) => {
      const answer = await send(server().url, bytes)
      judge(answer)
      if (answer.status === 200) answered++
    }),
    { numRuns },
  )
  return answered
}

test('each of 5,000 random chat requests gets a completion or an error within 2 s, without a memory leak', {
  timeout: 60_000,
}, async () => {
  await run(() => scriptedServer, almostValid, 1_000)
  const before = heapUsed()

  const answered = await run(() => scriptedServer, almostValid, 2_000)
  await run(() => scriptedServer, anyJson(fields), 1_000)
  await run(() => scriptedServer, anyBytes, 1_000)

  expect(answered).toBeGreaterThan(400)
  expect((heapUsed() - before) / 1024 ** 2, 'MB').toBeLessThan(5)
})

test('each of 300 random chat requests to a real model gets a completion or an error from one process', {
  timeout: 60_000,
}, async () => {
  const [{ processId } = {}] = local.loaded()

  const answered = await run(() => localServer, almostValid, 300)

  expect(answered).toBeGreaterThan(60)
  expect(processId).toBeTypeOf('number')
  expect(local.loaded()).toMatchObject([{ state: 'ready', processId }])
  const answer = await local.chat('Hello', { model: 'tiny', temperature: 0 })
  expect(answer.text).toBe('Hello! How can I help you?')
})

interface Answer {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly body: string
}

function send(url: string, body: string | Uint8Array): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(`${url}/v1/chat/completions`, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    })
    const timer = setTimeout(() => call.destroy(new Error(`No answer within ${limitMs} ms`)), limitMs)
    call.once('error', reject)
    call.once('close', () => clearTimeout(timer))
    call.once('response', (response) => {
      const { statusCode: status, headers } = response
      readText(response).then((body) => resolve({ status, type: headers['content-type'], body }), reject)
    })
    call.end(body)
  })
}

/** Expects a completion, a stream or an error that clients of OpenAI can parse. */
function judge({ status, type, body }: Answer): void {
  if (status !== 200) {
    expect([400, 404], body).toContain(status)
    expect(type).toMatch(/^application\/json/)
    expectEnvelope(body)
  } else if (type?.startsWith('text/event-stream')) {
    const frames = body.split('\n\n').slice(0, -1)
    expect(frames.at(-1)).toBe('data: [DONE]')
    const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.replace(/^data: /, '')))
    expect(chunks.length).toBeGreaterThan(1)
    for (const chunk of chunks) expect(chunk).toMatchObject({ object: 'chat.completion.chunk' })
  } else {
    expect(JSON.parse(body)).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: expect.any(String) } }],
    })
  }
}

const expectEnvelope = (body: string): void =>
  expect(JSON.parse(body)).toEqual({
    error: {
      message: expect.stringMatching(/./),
      type: 'invalid_request_error',
      param: expect.toBeOneOf([expect.any(String), null]),
      code: expect.toBeOneOf([expect.any(String), null]),
    },
  })

function heapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
