/** Recorded answers of a real Ollama, over its own and over Anthropic's API, as an upstream engine reads them. */
import { expect, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import type { GenerateRequest } from '../../packages/core/src/engine/request.ts'
import { exchanges } from '../golden/recording.ts'
import { stubUpstream } from '../support/upstream-stub.ts'

const call = { signal: new AbortController().signal }
const request: GenerateRequest = {
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
  logprobs: 0,
}
const pathOf = (path: string): string => path.split('?')[0] ?? ''

interface Line {
  readonly message?: { readonly content: string; readonly thinking?: string; readonly tool_calls?: unknown[] }
  readonly response?: string
  readonly thinking?: string
  readonly done: boolean
  readonly done_reason?: string
  readonly logprobs?: readonly unknown[]
  readonly eval_count?: number
  readonly prompt_eval_count?: number
}
const linesOf = (body: string): readonly Line[] =>
  body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const answers = exchanges
  .filter(
    ({ request: { path }, response: { status } }) =>
      status === 200 && ['/api/chat', '/api/generate'].includes(pathOf(path)),
  )
  .map(({ id, response: { body } }) => ({ id, body, lines: linesOf(body) }))
const complete = answers.filter(({ lines }) => lines.at(-1)?.done)

test.each(complete)('the answer $id has its text, calls and counts', async ({ body, lines }) => {
  const { engine } = await stubUpstream('ollama', (response) => response.end(body))
  const answer = await collect(engine.generate(request, call))
  const last = lines.at(-1)
  const join = (read: (line: Line) => string | undefined) => lines.map((line) => read(line) ?? '').join('')
  const calls = lines.flatMap(({ message }) => message?.tool_calls ?? [])

  expect(answer.text).toBe(join((line) => line.message?.content ?? line.response))
  expect(answer.reasoning ?? '').toBe(join((line) => line.message?.thinking ?? line.thinking))
  expect(answer.toolCalls ?? []).toHaveLength(calls.length)
  if (last?.eval_count) expect(answer.usage.outputTokens).toBe(last.eval_count)
  if (last?.prompt_eval_count) expect(answer.usage.inputTokens).toBe(last.prompt_eval_count)
  if (calls.length === 0) expect(answer.finishReason).toBe(last?.done_reason === 'length' ? 'length' : 'stop')
})

test('an answer that Ollama has ended without its last line is an error', async () => {
  const broken = answers.filter(({ lines }) => !lines.at(-1)?.done)
  expect(broken.length).toBeGreaterThan(0)
  for (const { body } of broken) {
    const { engine } = await stubUpstream('ollama', (response) => response.end(body))
    await expect(collect(engine.generate(request, call))).rejects.toMatchObject({ code: 'upstream' })
  }
})

test.each(
  exchanges.filter(
    ({ request: { path }, response: { status } }) =>
      status >= 400 && ['/api/chat', '/api/generate', '/v1/messages'].includes(pathOf(path)),
  ),
)('the refusal $id is a typed error', async ({ request: { path }, response: { status, body } }) => {
  const api = path.startsWith('/v1/') ? 'anthropic' : 'ollama'
  const { engine } = await stubUpstream(api, (response) => response.writeHead(status).end(body))
  const { logprobs: _, ...plain } = request
  const codes = { 400: /^invalid_request$|^context_length$/, 403: /^upstream$/, 404: /^not_found$/ }

  const error = await collect(engine.generate(plain, call)).catch((cause: unknown) => cause)

  expect(error).toMatchObject({
    code: expect.stringMatching(codes[status as keyof typeof codes] ?? /^upstream$/),
  })
})

const streams = exchanges.filter(({ response: { headers } }) =>
  Object.values(headers).some((value) => value.includes('event-stream')),
)
test.each(streams.filter(({ request: { path } }) => pathOf(path) === '/v1/messages'))(
  "the answer $id over Anthropic's API has its text and counts",
  async ({ response: { body } }) => {
    const { engine } = await stubUpstream('anthropic', (response) => response.end(body))
    const { logprobs: _, ...plain } = request
    const answer = await collect(engine.generate(plain, call))
    const textOf = (type: string, field: string): string =>
      [...body.matchAll(/^data: (.*)$/gm)]
        .map(([, json = '']) => JSON.parse(json).delta)
        .filter((delta) => delta?.type === type)
        .map((delta) => delta[field])
        .join('')

    expect(answer.text).toBe(textOf('text_delta', 'text'))
    expect(answer.reasoning ?? '').toBe(textOf('thinking_delta', 'thinking'))
    expect(answer.text).not.toBe('')
    expect(answer.usage.outputTokens).toBeGreaterThan(0)
    expect(answer.usage.isEstimated).toBeUndefined()
  },
)
