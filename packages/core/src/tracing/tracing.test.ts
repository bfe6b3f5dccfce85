import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { promptCanary } from '../../../../test/support/leaks.ts'
import { deepText } from '../../../../test/support/run-log.ts'
import { idOf, parentOf, recordSpans, traceOf, unknownAttributes } from '../../../../test/support/spans.ts'
import { createLlm } from '../create-llm.ts'
import { LlmError } from '../errors.ts'
import type { LlmOptions } from '../options.ts'
import { type Script, scriptedEngine } from '../testing/scripted-engine.ts'
import { registerTracing, type TracingOptions } from './register-tracing.ts'

let recorder: ReturnType<typeof recordSpans>
beforeAll(() => {
  recorder = recordSpans()
})
beforeEach(() => recorder.reset())
afterAll(() => recorder.close())

async function startTraced(script: Script, options: TracingOptions = {}, more: LlmOptions = {}) {
  const llm = await createLlm({ engine: scriptedEngine(script), models: [], ...more })
  const end = registerTracing(llm, options)
  onTestFinished(async () => {
    end()
    await llm.close()
  })
  return { llm, end }
}

const names = (): readonly string[] => recorder.spans().map(({ name }) => name)

test('the calls and tools of a chat are children of the span in which the app calls it', async () => {
  let next = 0
  const { llm } = await startTraced(() =>
    next++ === 0 ? [{ call: 'works' }, { call: 'fails', id: 'b' }] : 'Done.',
  )
  const own = trace.getTracer('app')

  await own.startActiveSpan('work', async (span) => {
    await llm.chat('Hello', {
      model: 'tiny',
      tools: {
        works: { execute: () => own.startActiveSpan('own', (inner) => inner.end()) ?? 'ok' },
        fails: {
          execute: () => {
            throw new RangeError('broken')
          },
        },
      },
    })
    span.end()
  })

  const work = recorder.named('work')
  const calls = recorder.spans().filter(({ name }) => name === 'chat tiny')
  expect(calls).toHaveLength(2)
  const tools = [recorder.named('execute_tool works'), recorder.named('execute_tool fails')]
  for (const span of [...calls, ...tools]) {
    expect(parentOf(span)).toBe(idOf(work))
    expect(traceOf(span)).toBe(traceOf(work))
  }
  expect(calls.map(({ kind }) => kind)).toEqual([SpanKind.CLIENT, SpanKind.CLIENT])
  expect(calls.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
    ['tool_call'],
    ['stop'],
  ])
  const [works, fails] = tools
  expect(works?.attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'works',
    'gen_ai.tool.call.id': 'call_0',
    'gen_ai.tool.type': 'function',
  })
  expect(fails?.attributes['error.type']).toBe('RangeError')
  expect(fails?.status).toEqual({ code: SpanStatusCode.ERROR })
})

test('embeddings and rankings have spans, and a count of tokens has none', async () => {
  const { llm } = await startTraced('Hi.')

  await llm.embed(['one', 'two'], { model: 'tiny', dimensions: 8 })
  await llm.rerank({ model: 'tiny', query: 'a', documents: ['a', 'b'] })
  await llm.countTokens({ model: 'tiny', input: { kind: 'text', prompt: ['Hello'] } })

  expect(names()).toEqual(['queue', 'embeddings tiny', 'queue', 'rerank tiny'])
  expect(recorder.named('embeddings tiny').attributes).toMatchObject({
    'gen_ai.operation.name': 'embeddings',
    'gen_ai.embeddings.dimension.count': 8,
    'gen_ai.usage.input_tokens': expect.any(Number),
  })
  expect(recorder.spans().flatMap(unknownAttributes)).toEqual([])
})

test('a call that the engine fails is an error with its code and its message', async () => {
  const { llm } = await startTraced([new LlmError('upstream', 'The model process has ended.')])

  await expect(llm.chat('Hello', { model: 'tiny' })).rejects.toThrow('ended')

  const { attributes, status } = recorder.named('chat tiny')
  expect(attributes).toMatchObject({ 'error.type': 'upstream', 'modelmount.status': 'failed' })
  expect(status).toEqual({ code: SpanStatusCode.ERROR, message: 'The model process has ended.' })
})

test('a refusal by a limit is an event and an error, without its message', async () => {
  const { llm } = await startTraced('Hi.')
  const options = { model: 'tiny', caller: { id: 'ann', limits: { requestsPerMinute: 1 } } }
  await llm.chat('Hello', options)
  recorder.reset()

  await expect(llm.chat('Hello', options)).rejects.toThrow('limit')

  expect(names()).toEqual(['chat tiny'])
  const { attributes, status, events } = recorder.named('chat tiny')
  expect(attributes['error.type']).toBe('rate_limit')
  expect(status).toEqual({ code: SpanStatusCode.ERROR })
  expect(events.map(({ name }) => name)).toEqual(['modelmount.limit.refused'])
})

test('a cached prompt is an event and an attribute', async () => {
  const { llm } = await startTraced('Hi.')
  const content = [{ type: 'text', text: 'Notes', cache: '5m' }] as const
  const ask = async () => {
    const input = { kind: 'chat', messages: [{ role: 'user', content }] } as const
    for await (const _ of await llm.generate({ model: 'tiny', input }));
  }

  await ask()
  await ask()

  const [write, hit] = recorder.spans().filter(({ name }) => name === 'chat tiny')
  expect(write?.attributes['gen_ai.usage.cache_write.input_tokens']).toBe(1)
  const written = write?.events.find(({ name }) => name === 'modelmount.cache.write')
  expect(written?.attributes).toEqual({ 'modelmount.tokens': 1 })
  expect(hit?.attributes['gen_ai.usage.cache_read.input_tokens']).toBe(1)
  expect(hit?.events.map(({ name }) => name)).toContain('modelmount.cache.hit')
})

test('a call whose reader leaves is no error, and its answer has no end', async () => {
  const { llm } = await startTraced(['one ', 'two ', 'three'])

  const stream = llm.chat('Hello', { model: 'tiny', stream: true })
  for await (const _ of stream) break
  await expect.poll(names).toContain('chat tiny')

  const { attributes, status } = recorder.named('chat tiny')
  expect(attributes).toMatchObject({
    'modelmount.status': 'aborted',
    'gen_ai.request.stream': true,
    'gen_ai.response.finish_reasons': ['error'],
  })
  expect(status).toEqual({ code: SpanStatusCode.UNSET })
})

test('the items of a batch have traces of their own', async () => {
  const database = `${emptyFolder()}/test.db`
  const { llm } = await startTraced('Hi.', {}, { batches: { database } })
  const requests = ['a', 'b'].map((id) => ({
    custom_id: id,
    params: { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] },
  }))

  await trace.getTracer('app').startActiveSpan('request', async (span) => {
    await llm.batches.create(requests)
    span.end()
  })
  await expect.poll(() => names().filter((name) => name === 'chat tiny'), { timeout: 5_000 }).toHaveLength(2)

  const items = recorder.spans().filter(({ name }) => name === 'chat tiny')
  expect(items.map(parentOf)).toEqual([undefined, undefined])
  expect(new Set([...items, recorder.named('request')].map(traceOf)).size).toBe(3)
  expect(items[0]?.attributes['modelmount.batch_item']).toBe(true)
})

const secretTool = {
  look: { description: promptCanary, execute: () => promptCanary },
}
const leaky: Script = ({ input }) =>
  input.kind === 'chat' && input.messages.length === 2
    ? [{ reasoning: promptCanary }, { call: 'look', arguments: { at: promptCanary } }]
    : promptCanary

test('spans contain no prompts, answers and tools by default', async () => {
  const { llm } = await startTraced(leaky)

  await llm.chat(promptCanary, {
    model: 'tiny',
    system: promptCanary,
    tools: secretTool,
    stop: [promptCanary],
  })
  const text = { kind: 'text', prompt: [promptCanary] } as const
  for await (const _ of await llm.generate({ model: 'tiny', input: text }, { endUser: promptCanary }));
  await llm.embed(promptCanary, { model: 'tiny' })
  await llm.rerank({ model: 'tiny', query: promptCanary, documents: [promptCanary] })
  await llm
    .chat('Hello', { model: 'tiny', tools: { [promptCanary]: { parameters: 1 as never } } })
    .catch(() => {})

  expect(names()).toContain('execute_tool look')
  expect(names()).toContain('text_completion tiny')
  const written = recorder
    .spans()
    .map(({ name, attributes, events, status, links }) =>
      deepText({ name, attributes, events, status, links }),
    )
  expect(written.join('\n')).not.toContain(promptCanary)
})

test('with `captureContent`, the span of an answer has its prompt, its text and its tools', async () => {
  const { llm } = await startTraced(leaky, { captureContent: true })

  await llm.chat('Hello', { model: 'tiny', system: 'Be brief.', tools: secretTool })

  const [first, second] = recorder.spans().filter(({ name }) => name === 'chat tiny')
  const read = (name: string, span = first): unknown => JSON.parse(String(span?.attributes[name]))
  const user = { role: 'user', parts: [{ type: 'text', content: 'Hello' }] }
  const system = { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] }
  const call = { type: 'tool_call', id: 'call_0', name: 'look', arguments: { at: promptCanary } }
  const answer = { role: 'assistant', parts: [{ type: 'reasoning', content: promptCanary }, call] }
  expect(read('gen_ai.input.messages')).toEqual([system, user])
  expect(read('gen_ai.output.messages')).toEqual([answer])
  expect(read('gen_ai.tool.definitions')).toMatchObject([
    { type: 'function', name: 'look', description: promptCanary },
  ])
  expect(read('gen_ai.input.messages', second)).toMatchObject([
    system,
    user,
    answer,
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_0', response: promptCanary }] },
  ])
  expect(read('gen_ai.output.messages', second)).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: promptCanary }] },
  ])
  expect(recorder.spans().flatMap(unknownAttributes)).toEqual([])
})

test('a span that is not sampled costs no spans of its phases, and the call runs', async () => {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new NodeTracerProvider({
    sampler: new AlwaysOffSampler(),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  const { llm } = await startTraced('Hi.', { tracerProvider })

  await expect(llm.chat('Hello', { model: 'tiny' })).resolves.toMatchObject({ text: 'Hi.' })

  expect([exporter.getFinishedSpans(), names()]).toEqual([[], []])
})

test('the end of the tracing ends the spans of running calls, and later calls have none', async () => {
  const { llm, end } = await startTraced(['one ', 'two'])

  const stream = llm.chat('Hello', { model: 'tiny', stream: true })
  for await (const _ of stream) end()
  await llm.chat('Hello', { model: 'tiny' })

  expect(names()).toEqual(['chat tiny'])
})
