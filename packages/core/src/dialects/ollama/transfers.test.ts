import { expect, test, vi } from 'vitest'
import type { LlmClient } from '../../calls/client.ts'
import { LlmError } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { jsonLine } from '../../http/streams.ts'
import type { Llm } from '../../llm.ts'
import type { CreateModelRequest } from '../../models/modelfile/create-request.ts'
import type { Progress } from '../../models/registry/progress.ts'
import type { Handler, RouteCall } from '../dialect.ts'
import { create, pull, push } from './transfers.ts'

const failure = new LlmError('upstream', 'pull model manifest: file does not exist')
const { signal } = new AbortController()

const ask = (handler: Handler, body: object, models: object): Promise<HttpResponse> =>
  handler(
    {
      llm: { models } as unknown as LlmClient,
      request: { json: async () => body, signal },
      onError: ({ message }) => jsonLine({ error: message }),
    } as RouteCall,
    {} as Llm,
  )

/** Creates a model store that reports these steps when it pulls or pushes a model. */
function pulling(...steps: readonly (Progress | LlmError)[]) {
  const calls: unknown[] = []
  const closed = vi.fn()
  async function* pull(...call: readonly unknown[]): AsyncGenerator<Progress> {
    calls.push(call)
    try {
      for (const step of steps) {
        if (step instanceof LlmError) throw step
        yield step
      }
    } finally {
      closed()
    }
  }
  return { models: { pull, push: pull }, calls, closed }
}

async function linesOf({ body }: HttpResponse): Promise<unknown[]> {
  const lines: unknown[] = []
  for await (const line of body as AsyncIterable<string>) lines.push(JSON.parse(line))
  return lines
}

const digest = `sha256:${'a'.repeat(64)}`
const steps: readonly Progress[] = [
  { status: 'pulling manifest' },
  { status: 'pulling aaaaaaaaaaaa', digest, totalBytes: 10, completedBytes: 0 },
  { status: 'pulling aaaaaaaaaaaa', digest, totalBytes: 10, completedBytes: 10 },
  { status: 'success' },
]

test('each step is one line without empty fields', async () => {
  const { models, calls } = pulling(...steps)

  const response = await ask(pull, { model: 'team/tiny', insecure: true }, models)

  expect(response).toMatchObject({ status: 200, headers: { 'content-type': 'application/x-ndjson' } })
  expect(await linesOf(response)).toEqual([
    { status: 'pulling manifest' },
    { status: 'pulling aaaaaaaaaaaa', digest, total: 10 },
    { status: 'pulling aaaaaaaaaaaa', digest, total: 10, completed: 10 },
    { status: 'success' },
  ])
  expect(calls).toEqual([['team/tiny', { signal, insecure: true }]])
})

test('without a stream the last step is the response', async () => {
  const { body, headers } = await ask(push, { name: 'tiny', stream: false }, pulling(...steps).models)

  expect([headers['content-type'], body]).toEqual(['application/json; charset=utf-8', '{"status":"success"}'])
})

test('a failure before the first step is thrown, and a later one is the last line', async () => {
  await expect(ask(pull, { model: 'tiny' }, pulling(failure).models)).rejects.toBe(failure)

  const response = await ask(pull, { model: 'tiny' }, pulling({ status: 'pulling manifest' }, failure).models)

  expect(await linesOf(response)).toEqual([{ status: 'pulling manifest' }, { error: failure.message }])
})

test('without a stream every failure is thrown', async () => {
  const { models } = pulling({ status: 'pulling manifest' }, failure)

  await expect(ask(pull, { model: 'tiny', stream: false }, models)).rejects.toBe(failure)
})

test('the transfer ends if the client disconnects before the first line', async () => {
  const { models, closed } = pulling(...steps)
  const { body } = await ask(pull, { model: 'tiny' }, models)

  await (body as AsyncIterable<string>)[Symbol.asyncIterator]().return?.()

  expect(closed).toHaveBeenCalledOnce()
})

test('the heartbeat repeats the latest step', async () => {
  vi.useFakeTimers()
  async function* slow(): AsyncGenerator<Progress> {
    yield { status: 'verifying sha256 digest' }
    await new Promise(() => {})
  }
  const { body } = await ask(pull, { model: 'tiny' }, { pull: slow })
  const lines = (body as AsyncIterable<string>)[Symbol.asyncIterator]()

  const first = await lines.next()
  const second = lines.next()
  await vi.advanceTimersByTimeAsync(20_000)

  expect(await second).toEqual(first)
  vi.useRealTimers()
})

test('create passes the fields of the body', async () => {
  const made: CreateModelRequest[] = []
  const store = {
    async *create(spec: CreateModelRequest): AsyncGenerator<Progress> {
      made.push(spec)
      yield { status: 'success' }
    },
  }

  for (const body of [
    { model: 'a', from: 'b', license: 'MIT', system: null, stream: false, quantization: 'q8_0' },
    { NAME: 'a', files: { 'x.gguf': digest }, license: ['MIT'], messages: [{ role: 'user', content: 'Hi' }] },
  ])
    await ask(create, body, store)

  expect(made).toEqual([
    { name: 'a', from: 'b', license: ['MIT'], quantize: 'q8_0' },
    { name: 'a', files: { 'x.gguf': digest }, license: ['MIT'], messages: [{ role: 'user', content: 'Hi' }] },
  ])
})

test.each<[Handler, object, string]>([
  [create, {}, 'invalid model name'],
  [create, { model: '../x', from: 'b' }, 'invalid model name'],
  [
    create,
    { model: 'x', files: { a: 1 } },
    'invalid files: expected names of files with the digests of blobs.',
  ],
  [create, { model: 'x', license: 5 }, 'invalid license: it has the wrong type.'],
  [create, { model: 'x', from: 'y', remote_host: 'https://z' }, 'A model on another server is not supported'],
  [create, { model: 'x', from: 'y', draft_quantize: 'q4' }, 'A draft model is not supported'],
  [pull, {}, 'invalid model name'],
  [pull, { model: 'a b' }, 'invalid model name'],
  [
    pull,
    { model: 'x', insecure: 'yes' },
    'cannot unmarshal string into Go struct field PullRequest.insecure',
  ],
  [push, {}, 'model is required'],
  [push, { model: 'a b' }, 'invalid model name'],
])('%o rejects %j', async (handler, body, message) => {
  await expect(ask(handler, body, {})).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining(message),
  })
})
