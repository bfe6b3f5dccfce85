/** Helpers that create message batches and files over HTTP, and wait for their end. */
import type Anthropic from '@anthropic-ai/sdk'
import type { Caller } from '@modelmount/core'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { json } from './calls.ts'
import type { Given } from './suite.ts'

type MessageBatch = Anthropic.Messages.MessageBatch
type MessageBatchResult = Anthropic.Messages.MessageBatchIndividualResponse

/** Batches need a database. */
export const withBatches: Given = { batches: {} }

/** Limits for `vi.waitFor` while items run. */
export const untilEnded = { interval: 10, timeout: 15_000 }

/** Ids that no batch and no file has, percent-encoded as in a URL. */
export const unknownIds: readonly string[] = [
  'msgbatch_unknown',
  'file-unknown',
  "' OR 1=1 --",
  '"; DROP TABLE modelmount_batches; --',
  '../../../etc/passwd',
  '%00',
  '\0',
  '%',
  '_',
  'a b',
  '🦊',
  'x'.repeat(1_000),
].map(encodeURIComponent)

/** A caller that the test can change between its requests. */
export function changingCaller(first: string) {
  const state = { id: first }
  const given: Given = { ...withBatches, caller: (): Caller => ({ id: state.id }) }
  return { state, given }
}

/** An engine whose answers wait until `open()`. Answers to a prompt with the word `interactive` do not wait. */
export function gatedEngine(): { readonly engine: ScriptedEngine; open(): void } {
  let open = (): void => {}
  const gate = new Promise<string>((resolve) => {
    open = () => resolve('Hello there.')
  })
  const engine = scriptedEngine(({ input }) =>
    JSON.stringify(input).includes('interactive') ? 'At once.' : gate,
  )
  return { engine, open: () => open() }
}

/** An item of a message batch. */
export const item = (custom_id: string, more: object = {}) => ({
  custom_id,
  params: { model: 'tiny', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }], ...more },
})

/** Sends the body that creates a message batch. A string or bytes are sent unchanged. */
export const sendBatch = (
  url: string,
  body: string | Uint8Array<ArrayBuffer> | object,
  headers: Readonly<Record<string, string>> = {},
) =>
  fetch(`${url}/v1/messages/batches`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  })

export async function createBatch(url: string, requests: readonly object[]): Promise<MessageBatch> {
  const response = await sendBatch(url, { requests })
  expect(response.status).toBe(200)
  return (await response.json()) as MessageBatch
}

export const batchUrl = (url: string, id: string, what = ''): string =>
  `${url}/v1/messages/batches/${id}${what}`

export const retrieveBatch = async (url: string, id: string): Promise<MessageBatch> =>
  (await (await fetch(batchUrl(url, id))).json()) as MessageBatch

export const listBatches = async (url: string, query = '') =>
  (await (await fetch(`${url}/v1/messages/batches${query}`)).json()) as {
    readonly data: readonly MessageBatch[]
    readonly has_more: boolean
    readonly first_id: string | null
    readonly last_id: string | null
  }

export const endedBatch = (url: string, id: string): Promise<MessageBatch> =>
  vi.waitFor(async () => {
    const batch = await retrieveBatch(url, id)
    expect(batch.processing_status).toBe('ended')
    return batch
  }, untilEnded)

/** Expects lines without a blank one, as the clients do. */
export function resultsIn(text: string): MessageBatchResult[] {
  expect(text).toMatch(/\n$/)
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as MessageBatchResult)
}

/** Results of a batch by the ids of its items. */
export async function resultsOf(url: string, id: string) {
  const results = resultsIn(await (await fetch(batchUrl(url, id, '/results'))).text())
  const byId = new Map(results.map(({ custom_id, result }) => [custom_id, result]))
  expect(byId.size).toBe(results.length)
  return byId
}

/** A line of a file with requests for OpenAI's API. */
export const line = (custom_id: string, more: object = {}, over: object = {}): string =>
  JSON.stringify({
    custom_id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }], ...more },
    ...over,
  })

export function toForm(
  content: string | Uint8Array<ArrayBuffer>,
  fields: Readonly<Record<string, string>> = { purpose: 'batch' },
) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new Blob([content]), 'requests.jsonl')
  return form
}

export const sendFile = (url: string, form: FormData) =>
  fetch(`${url}/v1/files`, { method: 'POST', body: form })

export async function uploadFile(
  url: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<OpenAI.FileObject> {
  const response = await sendFile(url, toForm(content))
  expect(response.status).toBe(200)
  return (await response.json()) as OpenAI.FileObject
}

/** Number of files that a client sees. */
export const countFiles = async (url: string): Promise<number> =>
  ((await (await fetch(`${url}/v1/files`)).json()) as { readonly data: readonly unknown[] }).data.length

export const sendOpenaiBatch = (url: string, input_file_id: string, more: object = {}) =>
  fetch(`${url}/v1/batches`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({
      ...{ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' },
      ...more,
    }),
  })

/** Uploads a file, and creates a batch of its lines. */
export async function createOpenaiBatch(
  url: string,
  lines: readonly string[],
  more: object = {},
): Promise<OpenAI.Batch> {
  const { id } = await uploadFile(url, lines.map((one) => `${one}\n`).join(''))
  const response = await sendOpenaiBatch(url, id, more)
  expect(response.status).toBe(200)
  return (await response.json()) as OpenAI.Batch
}

export const endedOpenaiBatch = (url: string, id: string): Promise<OpenAI.Batch> =>
  vi.waitFor(async () => {
    const batch = (await (await fetch(`${url}/v1/batches/${id}`)).json()) as OpenAI.Batch
    expect(['completed', 'failed', 'expired', 'cancelled']).toContain(batch.status)
    return batch
  }, untilEnded)

export interface OutputLine {
  readonly id: string
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly request_id: string
    // biome-ignore lint/suspicious/noExplicitAny: the shape differs between endpoints.
    readonly body: any
  } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** The lines of a file. */
export async function outputOf(url: string, file: string | null | undefined): Promise<readonly OutputLine[]> {
  const response = await fetch(`${url}/v1/files/${file}/content`)
  expect(response.status).toBe(200)
  return (await response.text())
    .split('\n')
    .slice(0, -1)
    .map((one) => JSON.parse(one) as OutputLine)
}
