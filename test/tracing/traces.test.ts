/** Traces of a real server with a real model, from the client's span to the last token. */
import { createRequire } from 'node:module'
import { registerTracing } from '@modelmount/core/tracing'
import { SpanKind } from '@opentelemetry/api'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { serve } from '../support/served.ts'
import {
  endOf,
  idOf,
  parentOf,
  recordSpans,
  type SpanRecorder,
  startOf,
  traceOf,
  unknownAttributes,
} from '../support/spans.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const clientSpan = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${clientSpan}-01`
const body = {
  model: 'tiny',
  messages: [{ role: 'user', content: 'Hello' }],
  stream: true,
  max_tokens: 50,
  temperature: 0,
}

let recorder: ReturnType<typeof recordSpans> & SpanRecorder
beforeAll(() => {
  recorder = recordSpans()
})
beforeEach(() => recorder.reset())
afterAll(() => recorder.close())

async function serveTraced() {
  const served = await serve({ models: emptyFolder(), local: { contextSize: 1_024 } })
  onTestFinished(registerTracing(served.llm))
  return served
}

test('one trace leads from the client through HTTP, queue, load and prefill to the last token', async () => {
  const instrumentation = new HttpInstrumentation()
  // Loading the module instruments the servers that exist already, too.
  createRequire(import.meta.url)('node:http')
  onTestFinished(() => instrumentation.disable())
  const { post } = await serveTraced()

  const response = await post('/v1/chat/completions', body, { traceparent })
  await response.text()
  await expect.poll(() => recorder.spans().map(({ name }) => name)).toContain('POST')

  const http = recorder.named('POST')
  const chat = recorder.named('chat tiny')
  const phases = ['queue', 'load', 'prefill', 'decode'].map((name) => recorder.named(name))
  for (const span of recorder.spans()) expect(traceOf(span)).toBe(traceId)
  expect(parentOf(http)).toBe(clientSpan)
  expect(parentOf(chat)).toBe(idOf(http))
  expect(chat.kind).toBe(SpanKind.INTERNAL)
  for (const phase of phases) expect(parentOf(phase)).toBe(idOf(chat))
  // Each phase begins where the one before ends, or later, and all are within the call.
  const times = phases.flatMap((phase) => [startOf(phase), endOf(phase)])
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times[0]).toBeGreaterThanOrEqual(startOf(chat))
  expect(times.at(-1)).toBeLessThanOrEqual(endOf(chat))
  // The model generates until the call ends.
  expect(endOf(chat) - (times.at(-1) as number)).toBeLessThan(500)
  expect(chat.events.map(({ name }) => name)).toEqual(['modelmount.admitted', 'modelmount.first_token'])
})

test('the attributes of the span are those of the conventions, with the tokens of the response', async () => {
  const { post, url } = await serveTraced()

  const unary = { ...body, stream: false, top_p: 0.9, seed: 7 }
  const response = await post('/v1/chat/completions', unary)
  const answer = (await response.json()) as {
    readonly id: string
    readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
  }
  await expect.poll(() => recorder.spans().map(({ name }) => name)).toContain('chat tiny')

  const { attributes } = recorder.named('chat tiny')
  expect(attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'modelmount',
    'gen_ai.request.model': 'tiny',
    'gen_ai.request.max_tokens': 50,
    'gen_ai.request.temperature': 0,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.seed': 7,
    'gen_ai.response.model': 'tiny:latest',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': answer.usage.prompt_tokens,
    'gen_ai.usage.output_tokens': answer.usage.completion_tokens,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(url).port),
    'http.route': '/v1/chat/completions',
    'modelmount.request.id': response.headers.get('x-request-id'),
  })
  expect(answer.id).toContain(attributes['gen_ai.response.id'])
  expect(recorder.spans().flatMap(unknownAttributes)).toEqual([])
})

test('without instrumentation of HTTP, the parent is the span in the headers', async () => {
  const { post } = await serveTraced()

  const response = await post('/v1/embeddings', { model: 'tiny', input: 'Hello' }, { traceparent })
  await response.text()
  await post('/v1/embeddings', { model: 'tiny', input: 'Hello' })
  await expect
    .poll(() => recorder.spans().filter(({ name }) => name.startsWith('embeddings')))
    .toHaveLength(2)

  const [first, second] = recorder.spans().filter(({ name }) => name === 'embeddings tiny')
  expect([first && traceOf(first), first && parentOf(first)]).toEqual([traceId, clientSpan])
  expect(first?.kind).toBe(SpanKind.SERVER)
  expect(second && parentOf(second)).toBeUndefined()
})
