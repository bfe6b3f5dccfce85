/**
 * C-6: calls wait in a queue without bounds, and their clients learn nothing. A queue has a maximum length and a
 * maximum wait. Rejections come at once, and every call that stays is answered.
 */
import type { RequestListener } from 'node:http'
import { createLlm, type Llm, LlmError, type LlmOptions, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toFetchHandler, toNodeHandler } from '@modelmount/core/http'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'

const models = emptyFolder()
const soon = { timeout: 5_000, interval: 5 }

/** An engine whose answers wait until `answerAll()`. */
function waitingEngine(): { readonly engine: ScriptedEngine; readonly answerAll: () => void } {
  let answerAll = (): void => {}
  const answer = new Promise<string>((resolve) => {
    answerAll = () => resolve('Hello there.')
  })
  return { engine: scriptedEngine(() => answer), answerAll: () => answerAll() }
}

async function start(options: LlmOptions & { readonly engine: Engine }): Promise<Llm> {
  const llm = await createLlm({ models, ...options })
  onTestFinished(() => llm.close())
  return llm
}

async function serve(llm: Llm): Promise<string> {
  const handler: RequestListener = toNodeHandler(routesFor(), llm)
  const { url, close } = await listen(handler)
  onTestFinished(close)
  return url
}

const bodyOf = (stream: boolean): RequestInit => ({
  method: 'POST',
  body: JSON.stringify({
    ...{ model: 'tiny', stream, max_tokens: 10 },
    messages: [{ role: 'user', content: 'Hi' }],
  }),
})

const post = (url: string, path: string, stream = false): Promise<Response> =>
  fetch(url + path, bodyOf(stream))

test.each([
  ['/api/chat', 503, { error: expect.stringContaining('No turn came within') }],
  ['/v1/chat/completions', 503, { error: { type: 'server_error', code: 'server_overloaded' } }],
  ['/v1/messages', 529, { type: 'error', error: { type: 'overloaded_error' } }],
] as const)('a call of %s that gets no turn in time ends with %s', async (path, status, body) => {
  const { engine, answerAll } = waitingEngine()
  const url = await serve(await start({ engine, maxAdmitted: 1, queueTimeout: '30ms' }))
  const first = post(url, path)
  await vi.waitFor(() => expect(engine.running).toBe(1), soon)

  const late = await Promise.all([post(url, path), post(url, path, true)])

  for (const response of late) {
    expect(response.status).toBe(status)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await response.json()).toMatchObject(body)
  }
  answerAll()
  expect((await first).status).toBe(200)
  expect((await post(url, path)).status).toBe(200)
})

test.each([
  ['/api/chat', /\n{"error":"No turn came within 300 s[^\n]*\n$/],
  ['/v1/chat/completions', /\ndata: {"error":{"message":"No turn came within 300 s[^\n]*\n\n$/],
  ['/v1/messages', /\nevent: error\ndata: {"type":"error","error":{"type":"overloaded_error"[^\n]*\n\n$/],
])(
  'a stream of %s that waits longer than 5 s begins, and ends with the error after five minutes',
  async (path, end) => {
    const { engine, answerAll } = waitingEngine()
    const llm = await start({ engine, maxAdmitted: 1 })
    const handle = toFetchHandler(routesFor(), llm, { remoteAddress: () => '127.0.0.1' })
    const ask = () => handle(new Request(`http://localhost${path}`, bodyOf(true)))
    const first = ask()
    await vi.waitFor(() => expect(engine.running).toBe(1), soon)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())

    const late = ask()
    // The time limits of the headers and of the wait in the queue.
    while (vi.getTimerCount() < 2) await new Promise(setImmediate)
    await vi.advanceTimersByTimeAsync(5_000)
    const { status, body } = await late
    const text = new Response(body).text()
    await vi.advanceTimersByTimeAsync(295_000)

    expect(status).toBe(200)
    expect(await text).toMatch(end)
    answerAll()
    await (await first).text()
  },
)

test('of 5,000 calls at once, 576 are answered in turn, and the others are rejected at once', async () => {
  const { engine, answerAll } = waitingEngine()
  const llm = await start({ engine, auth: 'host' })
  const callers = Array.from({ length: 50 }, (_, caller) => llm.as({ id: `caller ${caller}` }))
  const signal = new AbortController().signal
  const answered = new Map<number, number>()
  const refusals: LlmError[] = []
  const call = async (index: number): Promise<void> => {
    const input = { kind: 'text' as const, prompt: ['Hi'] }
    const caller = index % callers.length
    try {
      for await (const _event of (await callers[caller]?.generate({ model: 'tiny', input }, { signal })) ??
        []);
      answered.set(caller, (answered.get(caller) ?? 0) + 1)
    } catch (error) {
      refusals.push(LlmError.from(error))
    }
  }

  // Each caller has a call in the engine. The first one of a further caller would be admitted, too.
  const first = callers.map((_, index) => call(index))
  await vi.waitFor(() => expect(engine.running).toBe(callers.length), soon)
  const calls = [...first, ...Array.from({ length: 5_000 - first.length }, (_, index) => call(index))]
  await vi.waitFor(() => expect([engine.running, refusals.length]).toEqual([64, 5_000 - 576]), {
    ...soon,
    timeout: 30_000,
  })
  answerAll()
  await Promise.all(calls)

  expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set(['overloaded']))
  expect(Math.min(...refusals.map(({ details }) => details.retryAfterMs ?? 0))).toBeGreaterThanOrEqual(1_000)
  expect([...answered.values()].reduce((sum, count) => sum + count)).toBe(576)
  // No caller starves: all get the same share, rounded.
  expect(answered.size).toBe(50)
  expect(Math.min(...answered.values())).toBeGreaterThanOrEqual(11)
  expect(Math.max(...answered.values())).toBeLessThanOrEqual(13)
})
