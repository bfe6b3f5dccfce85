/** Responses are identical in every framework, except for ids and times. */
import type { RequestListener } from 'node:http'
import { Router } from '@koa/router'
import { createLlm, type Llm, LlmError, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { fastifyHandler } from '../support/fastify.ts'
import { type Listening, listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'
import { promptOf } from './calls.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  "Node's own server": (llm) => toNodeHandler(routesFor(), llm),
  Express: (llm) => express().use(llmRouter(llm)),
  Nest: (llm) => nestHandler(llm),
  'Express, under a prefix': (llm) => express().use('/llm', llmRouter(llm)),
  Fastify: (llm) => fastifyHandler(llm),
  Koa: (llm) => new Koa().use(koaRouter(llm).routes()).callback(),
  'Koa, under a prefix': (llm) =>
    new Koa().use(new Router().use('/llm', koaRouter(llm).routes()).routes()).callback(),
}

const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 5_000, contextSize: 4_096 })
const died = new LlmError('upstream', 'It died.')
const engine = scriptedEngine((request) => {
  const prompt = promptOf(request)
  return prompt === 'Long' ? tooLong : prompt === 'Fail' ? ['Once', died] : 'Hello there.'
})
const models = emptyFolder()
let llm: Llm
let servers: readonly Listening[]

beforeAll(async () => {
  llm = await createLlm({ engine, models })
  servers = await Promise.all(Object.values(mounts).map((mount) => listen(mount(llm))))
})

afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()))
  await llm.close()
})

const paths = {
  openai: '/v1/chat/completions',
  embeddings: '/v1/embeddings',
  anthropic: '/v1/messages',
  chat: '/api/chat',
  generate: '/api/generate',
  show: '/api/show',
} as const

const chatBody = (text: string, more: object = {}) =>
  JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: text }], ...more })
const messagesBody = (text: string, more: object = {}) => chatBody(text, { max_tokens: 9, ...more })
const tooLarge = 'a'.repeat(33 * 1024 ** 2)

test.each<[what: string, path: keyof typeof paths, status: number, body: string]>([
  ['a non-streamed answer', 'openai', 200, chatBody('Hello')],
  ['a stream', 'openai', 200, chatBody('Hello', { stream: true, stream_options: { include_usage: true } })],
  ['a stream that fails', 'openai', 200, chatBody('Fail', { stream: true })],
  ['a message without a role', 'openai', 400, '{"model":"tiny","messages":[{"content":"Hello"}]}'],
  ['a prompt longer than the context', 'openai', 400, chatBody('Long')],
  ['a body that is not JSON', 'openai', 400, '{'],
  ['an empty body', 'openai', 400, ''],
  ['a body over the limit', 'openai', 413, tooLarge],
  ['vectors in base64', 'embeddings', 200, '{"model":"tiny","input":"Hello","encoding_format":"base64"}'],

  ['a non-streamed answer', 'anthropic', 200, messagesBody('Hello')],
  ['a stream', 'anthropic', 200, messagesBody('Hello', { stream: true })],
  ['a stream that fails', 'anthropic', 200, messagesBody('Fail', { stream: true })],
  ['a call without `max_tokens`', 'anthropic', 400, chatBody('Hello')],
  ['a prompt longer than the context', 'anthropic', 400, messagesBody('Long')],
  ['a body that is not JSON', 'anthropic', 400, '{'],
  ['an empty body', 'anthropic', 400, ''],
  ['a body over the limit', 'anthropic', 413, tooLarge],

  ['a non-streamed answer', 'chat', 200, chatBody('Hello', { stream: false })],
  ['a stream', 'chat', 200, chatBody('Hello')],
  ['a stream that fails', 'chat', 200, chatBody('Fail')],
  ['a non-streamed answer', 'generate', 200, '{"model":"tiny","prompt":"Hello","stream":false}'],
  ['a stream', 'generate', 200, '{"model":"tiny","prompt":"Hello"}'],
  ['loading a model', 'generate', 200, '{"model":"tiny"}'],
  ['showing a model', 'show', 200, '{"model":"tiny"}'],
  ['showing a missing model', 'show', 404, '{"model":"nope"}'],
  ['a role of a wrong type', 'chat', 400, '{"model":"tiny","messages":[{"role":5}]}'],
  ['a prompt longer than the context', 'chat', 400, chatBody('Long')],
  ['a body that is not JSON', 'chat', 400, '{'],
  ['an empty body', 'chat', 400, ''],
  ['a body over the limit', 'chat', 413, tooLarge],
])('every mount gives the same response: %s (%s)', async (_what, path, status, body) => {
  const answers = await Promise.all(
    Object.keys(mounts).map(async (name, index) => {
      const prefix = name.endsWith('prefix') ? '/llm' : ''
      const response = await fetch(`${servers[index]?.url}${prefix}${paths[path]}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        body: masked(await response.text()),
      }
    }),
  )

  const [first, ...others] = answers
  expect(first?.status).toBe(status)
  expect(first?.body).toMatch(/./)
  expect(others).toEqual(others.map(() => first))
})

test.each(['/v1/models', '/api/tags', '/api/ps', '/api/version'])(
  'every mount gives the same response: %s',
  async (path) => {
    const answers = await Promise.all(
      Object.keys(mounts).map(async (name, index) => {
        const prefix = name.endsWith('prefix') ? '/llm' : ''
        const response = await fetch(`${servers[index]?.url}${prefix}${path}`)
        const text = (await response.text()).replaceAll(/"expires_at":"[^"]+"/g, '')
        return [response.status, response.headers.get('content-type'), text]
      }),
    )

    const [first, ...others] = answers
    expect(first?.[0]).toBe(200)
    expect(others).toEqual(others.map(() => first))
  },
)

/** Replaces ids and times, which differ between responses. */
const masked = (body: string): string =>
  body
    .replace(/"(id|request_id)":"(chatcmpl-|msg_|req_)[\w-]+"/g, '"$1":"…"')
    .replace(/"created":\d+/g, '"created":0')
    .replace(/"created_at":"[^"]+"/g, '"created_at":"…"')
    .replace(/"(\w+_duration)":\d+/g, '"$1":0')
