/** Helpers that call mounted routes and read the responses. */
import type Anthropic from '@anthropic-ai/sdk'
import type { DialectName } from '@modelmount/core'
import { type GenerateRequest, toTemplateMessages } from '@modelmount/core/engine'
import { readEvents } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect } from 'vitest'
import { promptCanary } from '../support/leaks.ts'

/** An API that clients of others call. */
export type ClientApi = Exclude<DialectName, 'modelmount'>

/** A prompt with a canary word. Tests fail if the word appears in logs or files. */
export const said = `Hello ${promptCanary}`
export const hello = { model: 'tiny', messages: [{ role: 'user', content: said }] }

export const json = { 'content-type': 'application/json' }
export const soon = { interval: 2, timeout: 2_000 }

export const chat = (url: string, body: unknown, headers = {}, signal: AbortSignal | null = null) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify(body),
    signal,
  })

export async function expectError(response: Response, status: number, error: object = {}): Promise<void> {
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  expect(await response.json()).toEqual({
    error: {
      message: expect.stringMatching(/./),
      type: 'invalid_request_error',
      param: null,
      code: null,
      ...error,
    },
  })
}

/** A minimal request body for Anthropic's API. */
export const greeting = { ...hello, max_tokens: 100 }

export const ask = (url: string, body: unknown, headers = {}, signal: AbortSignal | null = null) =>
  fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  })

/** @param message Expected error message. Default: any text. */
export async function expectAnthropicError(
  response: Response,
  status: number,
  type = 'invalid_request_error',
  message: unknown = expect.stringMatching(/./),
): Promise<void> {
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  expect(await response.json()).toEqual({
    type: 'error',
    error: { type, message },
    request_id: response.headers.get('request-id'),
  })
  expect(response.status).toBe(status)
}

export const messageOf = async (response: Response) => (await response.json()) as Anthropic.Message

export const textOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')

export async function messageEventsOf(response: Response): Promise<Anthropic.RawMessageStreamEvent[]> {
  const events: Anthropic.RawMessageStreamEvent[] = []
  for await (const { event, data } of readEvents(await response.text())) {
    const value = JSON.parse(data)
    expect(event).toBe(value.type)
    events.push(value)
  }
  return events
}

export const joinedText = (events: readonly Anthropic.RawMessageStreamEvent[]) =>
  events
    .map((event) =>
      event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
    )
    .join('')

export const completionOf = async (response: Response) => (await response.json()) as OpenAI.ChatCompletion

export const contentOf = ({ choices }: OpenAI.ChatCompletion) => choices[0]?.message.content

export async function eventsOf(response: Response): Promise<string[]> {
  const events: string[] = []
  for await (const { data } of readEvents(await response.text())) events.push(data)
  return events
}

export const chunksOf = async (response: Response) =>
  (await eventsOf(response))
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as OpenAI.ChatCompletionChunk)

export const joined = (chunks: readonly OpenAI.ChatCompletionChunk[]) =>
  chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')

export const finishOf = ({ choices }: OpenAI.ChatCompletionChunk) => choices[0]?.finish_reason

/** Text of the last message in a request to the engine. */
export const promptOf = ({ input }: GenerateRequest) =>
  (toTemplateMessages(input).at(-1)?.content ?? []).map((part) => ('text' in part ? part.text : '')).join('')

/** Calls Ollama's API. Sends an object as JSON, and a string or bytes unchanged. */
export const callOllama = (
  url: string,
  path: 'chat' | 'generate' | 'show' | 'embed' | 'embeddings' | 'copy',
  body: string | Uint8Array<ArrayBuffer> | object,
  headers = {},
  signal: AbortSignal | null = null,
) =>
  fetch(`${url}/api/${path}`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    signal,
  })

/** @param error Expected error text. Default: any text. */
export async function expectOllamaError(
  response: Response,
  status: number,
  error: unknown = expect.stringMatching(/./),
): Promise<void> {
  expect(await response.clone().text()).not.toContain('    at ')
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  expect(await response.json()).toEqual({ error })
  expect(response.status).toBe(status)
}

// biome-ignore lint/suspicious/noExplicitAny: the shape of a line differs between routes.
export type OllamaLine = Record<string, any>

export const wholeOf = async (response: Response) => (await response.json()) as OllamaLine

export const linesOf = async (response: Response): Promise<OllamaLine[]> =>
  (await response.text())
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
