/** Failures, slow models, slow readers and disconnected clients, in every dialect and on every mount. */
import { once } from 'node:events'
import { LlmError } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { type Script, scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, vi } from 'vitest'
import { ask, type ClientApi, callOllama, chat, greeting, hello, soon } from './calls.ts'
import type { Check } from './suite.ts'

/** How to call a dialect, and what its errors, streams and heartbeats look like. */
interface DialectCase {
  call(url: string, stream: boolean, signal?: AbortSignal): Promise<Response>
  /** Error of a failed engine, both as a response body and as the last frame of a stream. */
  readonly died: object
  readonly full: { readonly status: number; readonly body: object }
  /** Matches the end of a stream that is complete. */
  readonly end: RegExp
  /** Matches a stream that contains only a heartbeat. */
  readonly heartbeat: RegExp
}

const requestId = expect.stringMatching(/^req_.+/)

const dialects: Readonly<Record<ClientApi, DialectCase>> = {
  ollama: {
    call: (url, stream, signal) => callOllama(url, 'chat', { ...hello, stream }, {}, signal),
    died: { error: 'It died.' },
    full: { status: 503, body: { error: 'Full.' } },
    end: /"done":true,[^\n]*}\n$/,
    heartbeat: /^{"model":"tiny",[^\n]*"message":{"role":"assistant","content":""},"done":false}\n$/,
  },
  openai: {
    call: (url, stream, signal) => chat(url, { ...hello, stream }, {}, signal),
    died: { error: { message: 'It died.', type: 'server_error', param: null, code: null } },
    full: {
      status: 503,
      body: { error: { message: 'Full.', type: 'server_error', param: null, code: 'server_overloaded' } },
    },
    end: /data: \[DONE\]\n\n$/,
    heartbeat: /^: keepalive\n\n$/,
  },
  anthropic: {
    call: (url, stream, signal) => ask(url, { ...greeting, max_tokens: 1_000, stream }, {}, signal),
    died: { type: 'error', error: { type: 'api_error', message: 'It died.' }, request_id: requestId },
    full: {
      status: 529,
      body: { type: 'error', error: { type: 'overloaded_error', message: 'Full.' }, request_id: requestId },
    },
    end: /event: message_stop\ndata: {"type":"message_stop"}\n\n$/,
    heartbeat: /^event: ping\ndata: {"type":"ping"}\n\n$/,
  },
}

const died = new LlmError('upstream', 'It died.')
const full = new LlmError('overloaded', 'Full.', { retryAfterMs: 4_001 })

/** Words that no dialect uses in its frames, so that they can be found in any stream. */
const words = (count: number): string[] => Array.from({ length: count }, (_, index) => ` word${index}`)
const wordsIn = (body: string): string[] => (body.match(/word\d+/g) ?? []).map((word) => ` ${word}`)

const lastFrame = (body: string): unknown =>
  JSON.parse((body.trimEnd().split('\n').at(-1) ?? '').replace(/^data: /, ''))

/** Returns a function that reads until `enough` is true of the text so far, or the response ends. */
function reader({ body }: Response): (enough?: (read: string) => boolean) => Promise<string> {
  const chunks = (body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let read = ''
  return async (enough = () => false) => {
    while (!enough(read)) {
      const { value, done } = await chunks.read()
      if (done) break
      read += decoder.decode(value, { stream: true })
    }
    return read
  }
}

/** An engine that emits nothing until `load()`, like one that is loading a model. */
function loadingEngine(says: Script) {
  const scripted = scriptedEngine(says)
  const signals: AbortSignal[] = []
  let load = (): void => {}
  const loaded = new Promise<void>((resolve) => {
    load = resolve
  })
  const engine: Engine = {
    ...scripted,
    async *generate(request, { signal }) {
      signals.push(signal)
      await Promise.race([loaded, once(signal, 'abort')])
      yield* scripted.generate(request, { signal })
    },
  }
  return { engine, signals, load }
}

/** Fakes timers until the test ends. Sockets stay real. */
function stopTheClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

const checks: Readonly<Record<string, (dialect: DialectCase) => Check>> = {
  'an engine failure before the first token is a 500':
    ({ call, died: body }) =>
    async (serve) => {
      const url = await serve(scriptedEngine(died))

      for (const stream of [true, false]) {
        const response = await call(url, stream)

        expect(response.status).toBe(500)
        expect(await response.json()).toEqual(body)
      }
    },

  'an engine failure during the answer is the last frame of a stream, and a 500 without a stream':
    ({ call, died: body, end }) =>
    async (serve) => {
      const url = await serve(scriptedEngine([...words(2), died]))

      const streamed = await call(url, true)
      const frames = await streamed.text()
      const whole = await call(url, false)

      expect(streamed.status).toBe(200)
      expect(wordsIn(frames)).toEqual(words(2))
      expect(lastFrame(frames)).toEqual(body)
      expect(frames).not.toMatch(end)
      expect(whole.status).toBe(500)
      expect(await whole.json()).toEqual(body)
    },

  'a full queue is an error with `retry-after`':
    ({ call, full: { status, body } }) =>
    async (serve) => {
      const url = await serve(scriptedEngine(full))

      for (const stream of [true, false]) {
        const response = await call(url, stream)

        expect(response.status).toBe(status)
        expect(response.headers.get('retry-after')).toBe('5')
        expect(await response.json()).toEqual(body)
      }
    },

  'a slow reader gets the whole answer and does not delay other calls':
    ({ call, end }) =>
    async (serve) => {
      const engine = scriptedEngine(words(500))
      const url = await serve(engine)
      const read = reader(await call(url, true))
      await read((text) => text.includes('word'))
      await expect.poll(() => engine.running, soon).toBe(0)

      const models = await fetch(`${url}/v1/models`)
      const other = await call(url, false)
      const text = await read()

      expect([models.status, other.status]).toEqual([200, 200])
      expect(wordsIn(text)).toEqual(words(500))
      expect(text).toMatch(end)
    },

  'a client that disconnects during a stream ends its generation':
    ({ call }) =>
    async (serve) => {
      const engine = scriptedEngine(words(1_000), { delayMs: 5 })
      const url = await serve(engine)
      const leaving = new AbortController()
      await reader(await call(url, true, leaving.signal))((text) => text.includes('word'))

      leaving.abort()

      await expect.poll(() => engine.running, soon).toBe(0)
    },

  'a client that disconnects before the first token ends its generation':
    ({ call }) =>
    async (serve) => {
      const { engine, signals } = loadingEngine('Never.')
      const url = await serve(engine)
      const leaving = new AbortController()
      const calls = [true, false].map((stream) => call(url, stream, leaving.signal))
      await expect.poll(() => signals.length, soon).toBe(2)

      leaving.abort()

      await Promise.all(calls.map((response) => expect(response).rejects.toThrow('aborted')))
      await expect.poll(() => signals.map(({ aborted }) => aborted), soon).toEqual([true, true])
    },

  'a closed server completes the running answer and accepts no other call':
    ({ call, end }) =>
    async (_serve, start) => {
      const engine = scriptedEngine(words(50), { delayMs: 2 })
      const { url, server, llm } = await start(engine)
      const read = reader(await call(url, true))
      await read((text) => text.includes('word'))

      const closed = once(server, 'close')
      server.close()
      await expect(call(url, true)).rejects.toThrow('fetch failed')
      const text = await read()
      server.closeIdleConnections()
      await closed
      await llm.close()

      expect(wordsIn(text)).toEqual(words(50))
      expect(text).toMatch(end)
      expect(engine.requests).toHaveLength(1)
    },

  'a stream of a slowly loading model has headers after 5 s, heartbeats, and then the answer':
    ({ call, end, heartbeat }) =>
    async (serve) => {
      const { engine, signals, load } = loadingEngine(words(3))
      const url = await serve(engine)
      stopTheClock()
      const streaming = call(url, true)
      const answering = call(url, false)
      await expect.poll(() => signals.length, soon).toBe(2)

      await vi.advanceTimersByTimeAsync(5_000)
      const streamed = await streaming
      const read = reader(streamed)
      await vi.advanceTimersByTimeAsync(15_000)
      const silence = await read((text) => heartbeat.test(text))
      load()
      const text = await read()
      const whole = await answering

      expect(streamed.status).toBe(200)
      expect(silence).toMatch(heartbeat)
      expect(wordsIn(text)).toEqual(words(3))
      expect(text).toMatch(end)
      expect(whole.status).toBe(200)
      expect(wordsIn(await whole.text())).toEqual(words(3))
    },

  'a model that fails after a slow load is an error frame':
    ({ call, died: body, end }) =>
    async (serve) => {
      const { engine, signals, load } = loadingEngine(died)
      const url = await serve(engine)
      stopTheClock()
      const streaming = call(url, true)
      await expect.poll(() => signals.length, soon).toBe(1)

      await vi.advanceTimersByTimeAsync(5_000)
      const streamed = await streaming
      load()
      const frames = await streamed.text()

      expect(streamed.status).toBe(200)
      expect(lastFrame(frames)).toEqual(body)
      expect(frames).not.toMatch(end)
    },
}

/** Every check in every dialect. */
export const faults: Readonly<Record<string, Check>> = Object.fromEntries(
  Object.entries(dialects).flatMap(([name, dialect]) =>
    Object.entries(checks).map(([what, check]) => [`${name}: ${what}`, check(dialect)]),
  ),
)
