/** What a client gets does not depend on the framework, to the byte; only ids and times differ. */
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
import { type Listening, listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'
import { hello, promptOf } from './calls.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  "Node's own server": (llm) => toNodeHandler(routesFor(), llm),
  Express: (llm) => express().use(llmRouter(llm)),
  Nest: (llm) => nestHandler(llm),
  'Express, under a prefix': (llm) => express().use('/llm', llmRouter(llm)),
  Koa: (llm) => new Koa().use(koaRouter(llm).routes()).callback(),
  'Koa, under a prefix': (llm) =>
    new Koa().use(new Router().use('/llm', koaRouter(llm).routes()).routes()).callback(),
}

const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 5_000, contextSize: 4_096 })
const engine = scriptedEngine((request) => (promptOf(request) === 'Long' ? tooLong : 'Hello there.'))
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

test.each<[what: string, status: number, body: string]>([
  ['a whole answer', 200, JSON.stringify(hello)],
  ['a stream', 200, JSON.stringify({ ...hello, stream: true, stream_options: { include_usage: true } })],
  ['a message without a role', 400, '{"model":"tiny","messages":[{"content":"Hello"}]}'],
  ['a prompt that is too long', 400, '{"model":"tiny","messages":[{"role":"user","content":"Long"}]}'],
  ['a body that is not JSON', 400, '{'],
  ['an empty body', 400, ''],
  ['a body that is too large', 413, 'a'.repeat(33 * 1024 ** 2)],
])('%s is the same in every mount', async (_what, status, body) => {
  const answers = await Promise.all(
    Object.keys(mounts).map(async (name, index) => {
      const prefix = name.endsWith('prefix') ? '/llm' : ''
      const response = await fetch(`${servers[index]?.url}${prefix}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        body: (await response.text())
          .replace(/"id":"chatcmpl-[\w-]+"/g, '"id":"…"')
          .replace(/"created":\d+/g, '"created":0'),
      }
    }),
  )

  const [first, ...others] = answers
  expect(first?.status).toBe(status)
  expect(first?.body).toMatch(/./)
  expect(others).toEqual(others.map(() => first))
})
