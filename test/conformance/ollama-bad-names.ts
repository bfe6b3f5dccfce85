/** Invalid requests to routes that change models. Each gets a 400, and no file on disk changes. */
import { readdirSync } from 'node:fs'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { folderOf } from './ollama-calls.ts'
import { expectAnswers, making } from './ollama-routes.ts'
import type { Check, Serve } from './suite.ts'

type Body = string | Uint8Array<ArrayBuffer> | object
type Sent = readonly [call: `${'POST' | 'DELETE' | 'HEAD'} /api/${string}`, body?: Body]

/** By route: the fields that hold a model name, each with the other required fields of the request. */
const named = {
  'POST /api/create': [
    ['model', { from: 'made' }],
    ['name', { from: 'made' }],
    ['from', { model: 'other' }],
  ],
  'POST /api/copy': [
    ['source', { destination: 'other' }],
    ['destination', { source: 'made' }],
  ],
  'DELETE /api/delete': [
    ['model', {}],
    ['name', {}],
  ],
  'POST /api/pull': [
    ['model', {}],
    ['name', {}],
  ],
  'POST /api/push': [
    ['model', {}],
    ['name', {}],
  ],
  'POST /api/show': [
    ['model', {}],
    ['name', {}],
  ],
} as const satisfies Readonly<Record<Sent[0], readonly (readonly [field: string, beside: object])[]>>
const calls = Object.keys(named) as (keyof typeof named)[]

const badNames = [
  ...[
    '../../etc/passwd',
    'a/../../b',
    '..',
    '../..',
    '.hidden',
    '-x',
    'a//b',
    '/a',
    'a/',
    'x:',
    ':x',
    'x:../y',
  ],
  ...[
    '../x/made',
    'http://../x/made',
    'a\\b',
    '..\\..\\x',
    'a/b/c/d',
    '%2e%2e%2fx',
    'x@sha256:abc',
    'a b',
    'café',
  ],
  ...['a\0b', 'a\nb', 'CON:\u202e', '\ud800', 'm'.repeat(81), 'm'.repeat(5_000), `a/${'n'.repeat(81)}/b`],
]

const badDigests = [
  ...['sha256:abc', `sha256:${'g'.repeat(64)}`, `sha256:${'0'.repeat(65)}`, `md5:${'0'.repeat(32)}`],
  ...['..%2f..%2fmade', `sha256:..%2f..%2f${'0'.repeat(58)}`, `sha256-${'0'.repeat(63)}%00`],
]

const badBodies: readonly Body[] = [
  ...['', ' ', '{', '{"model":"x",}', 'hello', '[]', '"x"', '5', '['.repeat(1_000_000), '{"model":"x"}}'],
  new Uint8Array([...Buffer.from('{"model":"'), 0xff, ...Buffer.from('"}')]),
  ...[5, true, [], {}].map((model) => ({ model, source: model })),
  ...['stream', 'insecure', 'verbose'].map((field) => `{"${field}":"yes","source":[]}`),
]

const badCreates: readonly object[] = [
  ...['/abs', '../up', 'a/../../b', 'a\\..\\..\\b'].map((name) => ({
    files: { [name]: `sha256:${'0'.repeat(64)}` },
  })),
  ...['', '..', 'sha256:../../x'].map((digest) => ({ files: { 'x.bin': digest }, stream: false })),
  ...[[], 'x', { a: 1 }, { a: null }].map((files) => ({ files })),
  ...[1, 'x', { a: {} }].map((adapters) => ({ from: 'made', adapters })),
  ...[1, [], {}].flatMap((value) =>
    ['template', 'system', 'quantize', 'renderer', 'parser', 'requires'].map((field) => ({
      from: 'made',
      [field]: value,
    })),
  ),
  ...[5, {}, [5]].map((license) => ({ from: 'made', license })),
  ...[[], 'x', 5].map((parameters) => ({ from: 'made', parameters })),
  ...[{}, 'x', [{}], [{ role: 5, content: 'x' }], [{ role: 'user' }]].map((messages) => ({
    from: 'made',
    messages,
  })),
  { from: 'made', info: 'x' },
  { from: 'made', template: '{{ .Prompt' },
]

/** Checks that each request gets a 400 with an error text, and that the model folder stays the same. */
const refusing =
  (...sent: readonly Sent[]): Check =>
  async (serve) => {
    const { url, files } = await made(serve)
    const before = files()

    for (const [call, body] of sent) {
      const [method = '', path = ''] = call.split(' ')
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      const response = await fetch(url + path, {
        method,
        ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
      })
      const answer = await response.text()
      expect([call, body, response.status]).toEqual([call, body, 400])
      if (method !== 'HEAD') expect(JSON.parse(answer)).toEqual({ error: expect.stringMatching(/./) })
    }
    expect(files()).toEqual(before)
  }

async function made(serve: Serve) {
  const models = folderOf({})
  const url = await serve(scriptedEngine(''), { models, scopes: ['inference', 'models'] })
  await expectAnswers(url, making)
  return { url, files: () => readdirSync(models, { recursive: true, encoding: 'utf8' }).sort() }
}

export const badNamesAndBodies: Readonly<Record<string, Check>> = {
  'rejected with 400: invalid model names, in every route with a model name (Ollama API)': refusing(
    ...calls.flatMap((call) =>
      named[call].flatMap(([field, beside]) =>
        badNames.map((name): Sent => [call, { ...beside, [field]: name }]),
      ),
    ),
  ),
  'rejected with 400: invalid digests (Ollama API)': refusing(
    ...badDigests.flatMap((digest): Sent[] => [
      [`HEAD /api/blobs/${digest}`],
      [`POST /api/blobs/${digest}`, 'bytes'],
    ]),
  ),
  'rejected with 400: invalid bodies for routes that change models (Ollama API)': refusing(
    ...calls.flatMap((call) => badBodies.map((body): Sent => [call, body])),
  ),
  'rejected with 400: invalid create requests (Ollama API)': refusing(
    ...badCreates.map((body): Sent => ['POST /api/create', { model: 'other', ...body }]),
  ),
}
