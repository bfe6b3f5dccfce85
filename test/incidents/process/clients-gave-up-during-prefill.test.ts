/**
 * C-10: clients gave up after 300 s, because a server sent nothing while it loaded a model or evaluated a long
 * prompt. Here the official SDKs read a stream that is silent for ten minutes.
 */
import { once } from 'node:events'
import Anthropic from '@anthropic-ai/sdk'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { serve } from '../../support/served.ts'

const models = emptyFolder()
const messages = [{ role: 'user' as const, content: 'Hello' }]
const minutes = 10
const longestSilenceMs = 15_000

/** An engine that emits its first event when `release()` is called. */
function silentEngine() {
  const scripted = scriptedEngine('Hello there.')
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let onStart = (): void => {}
  const started = new Promise<void>((resolve) => {
    onStart = resolve
  })
  const engine: Engine = {
    ...scripted,
    async *generate(request, call) {
      onStart()
      await Promise.race([released, once(call.signal, 'abort')])
      yield* scripted.generate(request, call)
    },
  }
  return { engine, started, release: () => release() }
}

/** Joins the text of an answer that the SDK streams. Receives a `fetch` that reports each chunk. */
type Ask = (url: string, watched: typeof fetch) => Promise<string>

const sdks: Readonly<Record<string, Ask>> = {
  OpenAI: async (url, watched) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'x', fetch: watched, maxRetries: 0 })
    let text = ''
    for await (const chunk of await client.chat.completions.create({ model: 'tiny', messages, stream: true }))
      text += chunk.choices[0]?.delta.content ?? ''
    return text
  },
  Anthropic: async (url, watched) => {
    const client = new Anthropic({ baseURL: url, apiKey: 'x', fetch: watched, maxRetries: 0 })
    return client.messages.stream({ model: 'tiny', messages, max_tokens: 100 }).finalText()
  },
  Ollama: async (url, watched) => {
    const client = new Ollama({ host: url, fetch: watched })
    let text = ''
    for await (const { message } of await client.chat({ model: 'tiny', messages, stream: true }))
      text += message.content
    return text
  },
}

test.each(Object.entries(sdks))(
  'the SDK of %s gets an answer that begins after ten minutes, and bytes at least every 15 s',
  async (_name, ask) => {
    const { engine, started, release } = silentEngine()
    const { url } = await serve({ engine, models })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    let chunks = 0
    const watched: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      chunks++
      const counting = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          chunks++
          controller.enqueue(chunk)
        },
      })
      return new Response(response.body?.pipeThrough(counting), response)
    }
    const answer = ask(url, watched)
    await started

    for (let ms = 0; ms < minutes * 60_000; ms += longestSilenceMs) {
      const before = chunks
      await vi.advanceTimersByTimeAsync(longestSilenceMs)
      for (let turn = 0; turn < 500 && chunks === before; turn++) await new Promise(setImmediate)
      expect(chunks, `after ${ms / 1_000} s`).toBeGreaterThan(before)
    }
    release()

    expect(await answer).toBe('Hello there.')
  },
  20_000,
)
