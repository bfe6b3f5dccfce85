/** Starts apps with all model routes in Node's own server, which run until the test ends. */
import { createLlm, type Llm, type LlmOptions, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

export interface Served {
  readonly llm: Llm
  readonly url: string
  /** Sends a JSON body. A string is sent unchanged. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
}

export async function serve(options: LlmOptions): Promise<Served> {
  const llm = await createLlm(options)
  const { url, close } = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  return { llm, url, post: (path, body, headers) => post(url + path, body, headers) }
}

/** Like `serve`, with a scripted engine, which records its requests. */
export async function serveScripted(
  models: string,
  options: LlmOptions = {},
): Promise<Served & { readonly engine: ScriptedEngine }> {
  const engine = scriptedEngine('Hello there.')
  return { engine, ...(await serve({ engine, models, ...options })) }
}

export const post = (
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const messages = [{ role: 'user', content: 'Hello' }]

/** One route of each API that generates, with its smallest body for an answer without streaming. */
export const chats: readonly { readonly path: string; readonly body: Readonly<Record<string, unknown>> }[] = [
  { path: '/v1/chat/completions', body: { model: 'tiny', messages } },
  { path: '/v1/messages', body: { model: 'tiny', messages, max_tokens: 100 } },
  { path: '/api/chat', body: { model: 'tiny', messages, stream: false } },
]
