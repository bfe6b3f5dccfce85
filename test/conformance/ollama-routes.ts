/** A minimal request to every route of the Ollama API, including routes that always respond with an error. */
import { createHash } from 'node:crypto'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { hello } from './calls.ts'
import { encoder, folderOf, isLoaded, plain, question } from './ollama-calls.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check, Given } from './suite.ts'

type Asked = readonly [
  call: `${'GET' | 'HEAD' | 'POST' | 'DELETE'} /${string}`,
  body: object | Uint8Array<ArrayBuffer> | undefined,
  status: number,
  /** Expected fields of the last line of the response, or its exact text. */
  said?: object | string,
]

const text = { stream: false }
export const digestOf = (bytes: Uint8Array): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const file = new Uint8Array(plain)
const digest = digestOf(file)

/** Calls that create the model `made` in the store. */
export const making: readonly Asked[] = [
  [`POST /api/blobs/${digest}`, file, 201],
  ['POST /api/create', { model: 'made', files: { 'made.gguf': digest } }, 200, { status: 'success' }],
]

const models = (): Given => ({
  models: folderOf({ 'bert.gguf': [encoder, '2026-01-01'] }),
  scopes: ['inference', 'models'],
})

/** A check that sends the calls in order and compares each response. */
const asking =
  (...calls: readonly Asked[]): Check =>
  async (serve) => {
    const engine = { ...scriptedEngine('Hello there.'), loaded: () => [isLoaded('tiny:latest', 'never')] }
    await expectAnswers(await serve(engine, models()), calls)
  }

export async function expectAnswers(url: string, calls: readonly Asked[]): Promise<void> {
  for (const [call, body, status, said] of calls) {
    const [method = '', path = ''] = call.split(' ')
    const response = await fetch(url + path, {
      method,
      ...(body && { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    })
    const answer = await response.text()
    expect([call, response.status, answer]).toEqual([call, status, expect.anything()])
    if (typeof said === 'string') expect(answer).toBe(said)
    else if (said) expect(JSON.parse(answer.trim().split('\n').at(-1) ?? '')).toMatchObject(said)
  }
}

/** A model name in an unreachable registry. */
export const unreachable = '127.0.0.1:1/team/tiny'
const some = expect.anything()
const nothing = ''

export const routes = {
  'ollama:routes:root': asking(
    ['GET /', undefined, 200, 'Ollama is running'],
    ['HEAD /', undefined, 200, nothing],
  ),
  'ollama:routes:version': asking(
    ['GET /api/version', undefined, 200, { version: some }],
    ['HEAD /api/version', undefined, 200, nothing],
  ),
  'ollama:routes:status': asking([
    'GET /api/status',
    undefined,
    200,
    { cloud: { disabled: true, source: 'env' } },
  ]),
  'ollama:routes:tags': asking(
    ['GET /api/tags', undefined, 200, { models: some }],
    ['HEAD /api/tags', undefined, 200, nothing],
  ),
  'ollama:routes:ps': asking(['GET /api/ps', undefined, 200, { models: [{ name: 'tiny:latest' }] }]),
  'ollama:routes:show': asking(['POST /api/show', { model: 'tiny' }, 200, { model_info: some }]),
  'ollama:routes:generate': asking([
    'POST /api/generate',
    question,
    200,
    { done: true, done_reason: 'stop' },
  ]),
  'ollama:routes:chat': asking(['POST /api/chat', hello, 200, { done: true, done_reason: 'stop' }]),
  'ollama:routes:embed': asking([
    'POST /api/embed',
    { model: 'bert', input: 'Hi' },
    200,
    { embeddings: some },
  ]),
  'ollama:routes:embeddings': asking([
    'POST /api/embeddings',
    { model: 'bert', prompt: 'Hi' },
    200,
    { embedding: some },
  ]),
  'ollama:routes:create': asking(...making, [
    'POST /api/create',
    { model: 'other', from: 'made', system: 'Be kind.', ...text },
    200,
    { status: 'success' },
  ]),
  'ollama:routes:copy': asking(
    ...making,
    ['POST /api/copy', { source: 'made', destination: 'team/other:1' }, 200, nothing],
    ['POST /api/show', { model: 'team/other:1' }, 200, { model_info: some }],
  ),
  'ollama:routes:delete': asking(
    ...making,
    ['DELETE /api/delete', { model: 'made' }, 200, nothing],
    ['DELETE /api/delete', { name: 'made' }, 404, { error: "model 'made' not found" }],
  ),
  'ollama:routes:pull': asking([
    'POST /api/pull',
    { model: unreachable, insecure: true },
    200,
    { error: some },
  ]),
  'ollama:routes:push': asking([
    'POST /api/push',
    { model: unreachable, insecure: true },
    200,
    { error: some },
  ]),
  'ollama:routes:blobs': asking(
    [`HEAD /api/blobs/${digest}`, undefined, 404, nothing],
    [`POST /api/blobs/${digest}`, file, 201, nothing],
    [`POST /api/blobs/${digest}`, file, 200, nothing],
    [`HEAD /api/blobs/${digest}`, undefined, 200, nothing],
    [`HEAD /api/blobs/${digest.replace(':', '-')}`, undefined, 200, nothing],
    ['POST /api/blobs/sha256:abc', file, 400, { error: 'invalid digest format' }],
    [`GET /api/blobs/${digest}`, undefined, 405, '405 method not allowed'],
  ),
  'ollama:routes:account': asking(
    ['POST /api/me', {}, 503, { error: 'account unavailable' }],
    ['POST /api/signout', {}, 500, { error: 'there was an error signing out' }],
    ['DELETE /api/user/keys/abc', undefined, 500, { error: 'there was an error signing out' }],
  ),
  'ollama:routes:web': asking(
    [
      'POST /api/experimental/web_search',
      { query: 'x' },
      403,
      { error: 'ollama cloud is disabled: web search is unavailable' },
    ],
    [
      'POST /api/experimental/web_fetch',
      { url: 'x' },
      403,
      { error: 'ollama cloud is disabled: web fetch is unavailable' },
    ],
  ),
  'ollama:routes:recommendations': asking([
    'GET /api/experimental/model-recommendations',
    undefined,
    200,
    { recommendations: [] },
  ]),
  'ollama:routes:v1': asking(
    ['POST /v1/chat/completions', hello, 200, { object: 'chat.completion' }],
    ['POST /v1/completions', question, 200, { object: 'text_completion' }],
    ['POST /v1/embeddings', { model: 'bert', input: 'Hi' }, 200, { object: 'list' }],
    ['GET /v1/models', undefined, 200, { object: 'list' }],
    ['GET /v1/models/tiny', undefined, 200, { object: 'model' }],
    ['POST /v1/messages', { ...hello, max_tokens: 9 }, 200, { type: 'message' }],
  ),
  'ollama:routes:unknown': asking(
    ['POST /api/tokenize', {}, 404, '404 page not found'],
    ['GET /api/nope', undefined, 404, '404 page not found'],
  ),
  'ollama:routes:scope': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const refused = { error: expect.stringContaining("'models'") }
    await expectAnswers(url, [
      ['POST /api/create', { model: 'x', from: 'tiny' }, 403, refused],
      ['POST /api/pull', { model: 'x' }, 403, refused],
      ['POST /api/push', { model: 'tiny' }, 403, refused],
      ['POST /api/copy', { source: 'tiny', destination: 'x' }, 403, refused],
      ['DELETE /api/delete', { model: 'tiny' }, 403, refused],
      [`POST /api/blobs/${digest}`, file, 403, refused],
      [`HEAD /api/blobs/${digest}`, undefined, 403],
    ])
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
