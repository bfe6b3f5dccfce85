/** Background calls begin at an upstream server only while few calls run there. */
import type { ServerResponse } from 'node:http'
import type { Engine, EngineCall, GenerateRequest } from '@modelmount/core/engine'
import { upstreamEngine } from '@modelmount/core/upstream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { until } from '../support/processes.ts'
import { chatDelta, sendEvents, sendJson, UpstreamServer } from '../support/upstream-server.ts'

let server: UpstreamServer
let engine: Engine
/** Answers that have begun and do not end by themselves. */
let open: ServerResponse[]
beforeEach(async () => {
  open = []
  server = await UpstreamServer.start()
  server.answer = (response, { path }) => {
    if (path === '/v1/embeddings')
      return sendJson(response, { data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 1 } })
    open.push(sendEvents(response, chatDelta({ content: 'Hi' })))
    return undefined
  }
  engine = upstreamEngine({ url: server.url, server: 'vllm', backgroundBelow: 2 })
})
afterEach(async () => {
  await engine.close()
  await server.close()
})

const request: GenerateRequest = {
  model: 'small',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] },
}
const live = (): AbortSignal => new AbortController().signal
const ask = (call: Partial<EngineCall> = {}) => collect(engine.generate(request, { signal: live(), ...call }))
const begun = (count: number) => until(() => open.length === count, 5_000)
const finish = (response = open.shift()): void =>
  void (response && sendEvents(response, chatDelta({}, 'stop'), 'data: [DONE]\n\n').end())

test('a background call waits until fewer calls than the bound run', async () => {
  const first = ask()
  const second = ask()
  await begun(2)
  const background = ask({ background: true })
  const third = ask()

  await begun(3)
  finish()
  finish()
  await Promise.all([first, second])

  await begun(2)
  finish()
  finish()
  expect((await background).text).toBe('Hi')
  expect((await third).text).toBe('Hi')
})

test('background calls alone run side by side up to the bound', async () => {
  const answers = [1, 2, 3].map(() => ask({ background: true }))
  await begun(2)

  finish()
  await answers[0]

  await begun(2)
  finish()
  finish()
  expect(await Promise.all(answers)).toHaveLength(3)
})

test('a background call that is aborted while it waits never reaches the server', async () => {
  const running = [ask(), ask()]
  await begun(2)
  const leaving = new AbortController()
  const answer = ask({ signal: leaving.signal, background: true })
  const vectors = engine.embed(
    { model: 'small', inputs: ['a'] },
    { signal: leaving.signal, background: true },
  )

  leaving.abort()

  await expect(vectors).rejects.toMatchObject({ name: 'AbortError' })
  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
  finish()
  finish()
  await Promise.all(running)
  expect(server.requests.filter(({ path }) => path !== '/v1/models')).toHaveLength(2)
})

test('closing the engine ends the calls that wait', async () => {
  const running = [ask(), ask()]
  await begun(2)
  const background = ask({ background: true })

  const closed = Promise.allSettled([...running, background])
  await engine.close()

  expect((await closed)[2]).toMatchObject({
    reason: { code: 'overloaded', message: 'The engine was closed.' },
  })
})
