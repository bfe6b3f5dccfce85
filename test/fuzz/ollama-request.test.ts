/** Random requests to the Ollama API. Each gets an answer or an error text within 10 s, and never a 5xx. */
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

/** A call may unload the model, so the next call has to load it again. */
const limitMs = 10_000
const models = emptyFolder()
const scopes = ['inference', 'models'] as const
const scripted = await createLlm({ engine: forgetful(), models, scopes })
const local = await createLlm({ models, scopes })
let scriptedServer: Listening
let localServer: Listening

beforeAll(async () => {
  scriptedServer = await listen(toNodeHandler(routesFor(), scripted))
  localServer = await listen(toNodeHandler(routesFor(), local))
  await local.load('tiny')
})

afterAll(async () => {
  await Promise.all([scriptedServer, localServer].map((server) => server.close()))
  await Promise.all([scripted, local].map((llm) => llm.close()))
})

/** Returns a scripted engine that does not record requests. */
function forgetful(): Engine {
  const { generate: _, ...rest } = scriptedEngine('')
  return { ...rest, generate: (request, call) => scriptedEngine('Hello there.').generate(request, call) }
}

const message = fc
  .tuple(
    mostly(fc.constantFrom('"user"', '"System"', '"developer"', '"assistant"', '"anything"', '""')),
    mostly(text),
    fc.array(
      fc.tuple(
        fc.constantFrom('thinking', 'images', 'tool_calls', 'tool_name', 'Content', '__proto__'),
        mostly(fc.oneof(text, fc.constantFrom('[]', 'null')), 5),
      ),
      { maxLength: 1 },
    ),
  )
  .map(([role, content, others]) => object([...Object.entries({ role, content }), ...others]))

const tool = mostly(
  mostly(fc.constantFrom('"f"', '"get_weather"'), 10).map((name) =>
    object([['function', object([['name', name]])]]),
  ),
)

const duration = fc.oneof(
  fc.constantFrom('"5m"', '"1h30m"', '"-1s"', '-1', '300', '0.5', '"1.5h"'),
  asJson(fc.tuple(fc.nat(), fc.constantFrom('s', 'h', '', 'd')).map((parts) => parts.join(''))),
)

const options: Values = {
  temperature: numbers(0, 100),
  top_k: numbers(0, 1e6),
  top_p: numbers(0, 1),
  min_p: numbers(0, 1),
  seed: numbers(-1e15, 1e15),
  repeat_penalty: numbers(0.01, 100),
  repeat_last_n: numbers(-1, 1e6),
  presence_penalty: numbers(-100, 100),
  frequency_penalty: numbers(-100, 100),
  stop: list(text),
  typical_p: fc.constant('1'),
  num_gpu: numbers(-1, 100),
  use_mmap: asJson(fc.boolean()),
  mirostat: anyValue,
}

/** Keeps answers short and the context size unchanged, because another context size reloads the model. */
const short: readonly (readonly [name: string, value: string])[] = [
  ['num_predict', '4'],
  ['num_ctx', '0'],
]

/** Likely valid values for every field. */
const fields: Values = {
  stream: asJson(fc.boolean()),
  options: fc.array(oneOf(options, 10), { maxLength: 4 }).map((some) => object([...some, ...short])),
  keep_alive: duration,
  think: fc.constantFrom('true', 'false', '"low"', '"max"', 'null'),
  truncate: asJson(fc.boolean()),
  shift: asJson(fc.boolean()),
  format: fc.constantFrom('""', 'null', '"json"', '{}', '{"type":"object"}', '{"type":"xml"}'),
  logprobs: asJson(fc.boolean()),
  top_logprobs: asJson(fc.integer({ min: 0, max: 20 })),
  raw: asJson(fc.boolean()),
  system: text,
  context: asJson(fc.array(fc.nat({ max: 1_535 }), { maxLength: 5 })),
  suffix: mostly(fc.constant('""')),
  template: fc.constant('""'),
  images: fc.constant('[]'),
  tools: list(tool),
  _debug_render_only: asJson(fc.boolean()),
  Messages: list(message),
  ['__proto__']: anyValue,
}

/** A valid request with a few random values. */
const almostValid = fc
  .tuple(
    mostly(fc.constantFrom('"tiny"', '"TINY:latest"'), 50),
    mostly(list(mostly(message, 50)), 50),
    mostly(text, 50),
    fc.array(oneOf(fields, 8), { maxLength: 4 }),
  )
  .map(([model, messages, prompt, others]) =>
    object([['options', object(short)], ...Object.entries({ model, messages, prompt }), ...others]),
  )

const routes = ['chat', 'generate'] as const

/** Resolves with the number of accepted requests. A run in which all requests are rejected proves nothing. */
async function run(
  server: () => Listening,
  body: fc.Arbitrary<string | Uint8Array<ArrayBuffer>>,
  numRuns: number,
): Promise<number> {
  let answered = 0
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), body, async (route, bytes) => {
      const response = await fetch(`${server().url}/api/${route}`, {
        method: 'POST',
        body: bytes,
        signal: AbortSignal.timeout(limitMs),
      })
      judge(route, response, await response.text())
      if (response.ok) answered++
    }),
    { numRuns },
  )
  return answered
}

test('each of 1,000 random Ollama requests gets an answer or an error', { timeout: 60_000 }, async () => {
  const answered = await run(() => scriptedServer, almostValid, 600)
  await run(() => scriptedServer, anyJson(fields), 200)
  await run(() => scriptedServer, anyBytes, 200)

  expect(answered).toBeGreaterThan(150)
})

test('each of 200 random requests to a real model gets an answer or an error, and the next call works', {
  timeout: 60_000,
}, async () => {
  const answered = await run(() => localServer, almostValid, 200)

  expect(answered).toBeGreaterThan(50)
  const answer = await local.chat('Hello', { model: 'tiny', temperature: 0 })
  expect(answer.text).toBe('Hello! How can I help you?')
})

/** Expects an answer, a stream or an error that clients of Ollama can parse. */
function judge(route: (typeof routes)[number], { status, headers }: Response, body: string): void {
  const type = headers.get('content-type')
  if (status !== 200) {
    expect([400, 403, 404], body).toContain(status)
    expect(type).toBe('application/json; charset=utf-8')
    expect(JSON.parse(body)).toEqual({ error: expect.stringMatching(/./) })
    return
  }
  const isStream = type === 'application/x-ndjson'
  const lines = (isStream ? body.split('\n').slice(0, -1) : [body]).map((line) => JSON.parse(line))
  for (const line of lines)
    expect(line).toMatchObject(
      route === 'chat'
        ? { message: { role: 'assistant', content: expect.any(String) } }
        : { response: expect.any(String) },
    )
  const last = lines.at(-1)
  if ('_debug_info' in last) return
  expect(lines.map(({ done }) => done)).toEqual(lines.map((line) => line === last))
  expect(last.done_reason).toMatch(/^(stop|length|load|unload)$/)
}
