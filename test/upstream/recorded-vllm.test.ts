/** Recorded answers of vLLM 0.32.0, as an upstream engine reads them. */
import { createLlm } from '@modelmount/core'
import type { Engine, GenerateRequest } from '@modelmount/core/engine'
import { upstreamEngine } from '@modelmount/core/upstream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { sendEvents, sendJson, UpstreamServer } from '../support/upstream-server.ts'

let server: UpstreamServer
let engine: Engine
beforeEach(async () => {
  server = await UpstreamServer.start()
  server.models = (response) =>
    sendJson(response, {
      object: 'list',
      data: [{ id: 'small', object: 'model', owned_by: 'vllm', root: 'small', max_model_len: 4_096 }],
    })
  engine = upstreamEngine({ url: server.url })
})
afterEach(async () => {
  await engine.close()
  await server.close()
})

const request: GenerateRequest = {
  model: 'small',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi there' }] }] },
}
const ask = (changes: Partial<GenerateRequest> = {}, signal = new AbortController().signal) =>
  engine.generate({ ...request, ...changes }, { signal })
const body = () => server.requests.at(-1)?.body

const chunk = (choices: readonly object[], usage: object) => ({
  ...{ id: 'chatcmpl-b46c37676b872de6', object: 'chat.completion.chunk', created: 1_795_856_707 },
  ...{ model: 'small', choices, usage },
})
const counted = (completion: number) => ({
  ...{ prompt_tokens: 27, total_tokens: 27 + completion, completion_tokens: completion },
})
const first = chunk(
  [{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
  { ...counted(0), completion_tokens_details: null },
)
const text = (content: string, completion: number, finishReason: string | null = null) =>
  chunk(
    [{ index: 0, delta: { content }, logprobs: null, finish_reason: finishReason, stop_reason: null }],
    counted(completion),
  )
const last = {
  ...chunk([], { ...counted(2), prompt_tokens_details: { cached_tokens: 16, created_cache_tokens: 0 } }),
  system_fingerprint: 'vllm-0.32.0-fc3115e0',
}

test('an answer has the counts of its last chunk', async () => {
  server.answer = (response) =>
    sendEvents(response, first, text('m', 1), text('5', 2, 'length'), last, 'data: [DONE]\n\n').end()

  const answer = await collect(ask())

  expect(answer).toMatchObject({ text: 'm5', finishReason: 'length' })
  expect(answer.usage).toMatchObject({ inputTokens: 27, cacheReadTokens: 16, outputTokens: 2 })
  expect(answer.usage).not.toHaveProperty('isEstimated')
})

test('a call that does not reach its end is charged for the prompt that the first chunk counts', async () => {
  server.answer = (response) => void sendEvents(response, first, text('m', 1), text('5', 2))
  const llm = await createLlm({ models: emptyFolder(), engines: { gpu: engine }, database: ':memory:' })
  const leaving = new AbortController()
  const call = { signal: leaving.signal }

  for await (const event of await llm.generate({ ...request, model: 'gpu/small' }, call))
    if (event.type === 'text' && event.text === '5') leaving.abort()

  await expect
    .poll(() => llm.usage.calls())
    .toMatchObject([{ status: 'aborted', tokens: { input: 27, cachedInput: 0, output: 2 } }])
  await llm.close()
})

test('a first chunk without a count leaves the estimate', async () => {
  const zero = { prompt_tokens: 0, total_tokens: 0, completion_tokens: 0 }
  server.answer = (response) => sendEvents(response, { ...first, usage: zero }, text('m', 1)).end()

  const start = await ask()[Symbol.asyncIterator]().next()

  expect(start.value).toMatchObject({ type: 'start', inputTokens: expect.toSatisfy((count) => count > 0) })
})

test('a limit that no answer can reach is lowered to the context size, since vLLM rejects it', async () => {
  server.answer = (response) => sendEvents(response, first, text('m', 1, 'stop'), 'data: [DONE]\n\n').end()
  // `createLlm()` looks for a model before it calls it.
  await engine.findModel?.('small')

  await collect(ask({ maxTokens: 32_000 }))
  expect(body()).toMatchObject({ max_tokens: 4_096 })
  await collect(ask({ defaultMaxTokens: 32_000 }))
  expect(body()).toMatchObject({ max_tokens: 4_096 })
  await collect(ask({ maxTokens: 4_096 }))
  expect(body()).toMatchObject({ max_tokens: 4_096 })
  await collect(ask({ maxTokens: 100, defaultMaxTokens: 32_000 }))
  expect(body()).toMatchObject({ max_tokens: 100 })
  await collect(ask({ maxTokens: 9_000, load: { contextSize: 8_192 } }))
  expect(body()).toMatchObject({ max_tokens: 8_192 })
  await collect(ask())
  expect(body()).not.toHaveProperty('max_tokens')
})

test('a prompt that is too long says how long both are', async () => {
  const message =
    "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=4097)"
  server.answer = (response) =>
    sendJson(response, { error: { message, type: 'BadRequestError', param: 'input_tokens', code: 400 } }, 400)

  await expect(collect(ask())).rejects.toMatchObject({
    ...{ code: 'context_length', details: { inputTokens: 4_097, contextSize: 4_096 } },
  })
})

test('a route that vLLM has only for other models is not supported, and an unknown model is not found', async () => {
  const call = { signal: new AbortController().signal }
  server.answer = (response) => sendJson(response, { detail: 'Not Found' }, 404)

  await expect(engine.embed({ model: 'small', inputs: ['x'] }, call)).rejects.toMatchObject({
    code: 'invalid_request',
  })
  await expect(engine.rerank({ model: 'small', query: 'x', documents: ['y'] }, call)).rejects.toMatchObject({
    code: 'invalid_request',
  })

  const message = 'The model `other` does not exist. Valid aliases: small.'
  server.answer = (response) =>
    sendJson(response, { error: { message, type: 'NotFoundError', param: 'model', code: 404 } }, 404)
  await expect(collect(ask({ model: 'other' }))).rejects.toMatchObject({ code: 'not_found' })
})

test('an engine that dies within an answer is an error, after what has arrived', async () => {
  const message = 'EngineCore encountered an issue. See stack trace (above) for the root cause.'
  server.answer = (response) =>
    sendEvents(
      response,
      ...[first, text('m', 1), { error: { message, type: 'InternalServerError', param: null, code: 500 } }],
      'data: [DONE]\n\n',
    ).end()
  let received = ''
  const read = async () => {
    for await (const event of ask()) if (event.type === 'text') received += event.text
  }

  await expect(read()).rejects.toMatchObject({
    ...{ code: 'upstream', details: { upstreamFailure: 'failed' } },
  })
  expect(received).toBe('m')
})

test('texts that are too long are cut by vLLM if the request asks for it', async () => {
  const call = { signal: new AbortController().signal }
  const usage = { prompt_tokens: 1_024, total_tokens: 1_024, completion_tokens: 0 }
  server.answer = (response, { path }) =>
    sendJson(response, {
      ...{ object: 'list', model: 'small', usage },
      ...(path === '/v1/embeddings'
        ? { data: [{ index: 0, object: 'embedding', embedding: [0.6, 0.8] }] }
        : { results: [{ index: 0, document: { text: 'y' }, relevance_score: 0.25 }] }),
    })
  const cut = { truncate_prompt_tokens: -1, truncation_side: 'right' }

  const { embeddings, inputTokens } = await engine.embed(
    { model: 'small', inputs: ['x'], overflow: 'truncate' },
    call,
  )
  expect([embeddings, inputTokens]).toEqual([[[0.6, 0.8]], 1_024])
  expect(body()).toMatchObject({ input: ['x'], ...cut })
  const ranking = await engine.rerank(
    { model: 'small', query: 'x', documents: ['y'], overflow: 'truncate' },
    call,
  )
  expect(ranking.scores).toEqual([0.25])
  expect(body()).toMatchObject({ documents: ['y'], ...cut })

  await engine.embed({ model: 'small', inputs: ['x'] }, call)
  expect(body()).not.toHaveProperty('truncate_prompt_tokens')
})

test('vLLM takes no `top_p` of 0, and gets one that leaves only the first token', async () => {
  server.answer = (response) => sendEvents(response, first, text('m', 1, 'stop'), 'data: [DONE]\n\n').end()

  await collect(ask({ sampling: { topP: 0 } }))
  expect(body()).toMatchObject({ top_p: 1e-6 })
  await collect(ask({ sampling: { topP: 0.5 } }))
  expect(body()).toMatchObject({ top_p: 0.5 })
})

test('unpaired surrogates, for which vLLM fails, are replaced, and nothing else', async () => {
  server.answer = (response) => sendEvents(response, first, text('m', 1, 'stop'), 'data: [DONE]\n\n').end()
  const half = '🧀'.slice(0, 1)
  const others = [String.raw`🧀 \ud83e \\ud83e`, '\u{d7ff}\u{e000}\\']

  await collect(
    ask({
      stop: [`${half}${half}`, `\\${half}`, ...others],
      format: { type: 'json-schema', schema: { type: 'object', properties: { [half]: {} } } },
    }),
  )

  expect(body()).toMatchObject({
    stop: ['\ufffd\ufffd', '\\\ufffd', ...others],
    response_format: { json_schema: { schema: { properties: { '\ufffd': {} } } } },
  })
})

test('the prompt that is counted is that of the call', async () => {
  const call = { signal: new AbortController().signal }
  server.answer = (response, { path }) =>
    path === '/tokenize'
      ? sendJson(response, { count: 27, max_model_len: 4_096, tokens: [], token_strs: null })
      : sendEvents(response, first, text('m', 1, 'stop'), 'data: [DONE]\n\n').end()
  const messages = [
    ...(request.input.kind === 'chat' ? request.input.messages : []),
    { role: 'assistant', content: [{ type: 'text', text: 'Well' }] },
  ] as const
  const tools = [{ name: 'f', parameters: { type: 'object' }, strict: true }] as const
  const whole: GenerateRequest = {
    ...{ model: 'small', reasoning: false },
    input: {
      kind: 'chat',
      messages,
      tools,
      toolChoice: { mode: 'none' },
      templateOptions: { language: 'de' },
    },
  }

  expect(await engine.countTokens(whole, call)).toBe(27)
  const counted = body() as Record<string, unknown>
  await collect(engine.generate(whole, call))

  expect(counted).toMatchObject({
    tools: [{ type: 'function', function: { name: 'f', strict: true } }],
    ...{ add_generation_prompt: false, continue_final_message: true },
    chat_template_kwargs: { language: 'de', enable_thinking: false },
  })
  expect(body()).toMatchObject(counted)
})
