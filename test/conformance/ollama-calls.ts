/** Helpers for checks of the Ollama API: calls, engines, and folders with models. */
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LlmError } from '@modelmount/core'
import {
  type Engine,
  type GenerateEvent,
  type GenerateRequest,
  type LoadedModel,
  toTemplateMessages,
  uncached,
} from '@modelmount/core/engine'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished } from 'vitest'
import { countEntry, gguf, textEntry } from '../support/gguf.ts'
import { callOllama, hello } from './calls.ts'
import type { Given } from './suite.ts'

/** Callers may choose how a model is loaded. */
export const mayLoad: Given = { scopes: ['inference', 'models'] }

export const question = { model: 'tiny', prompt: 'Hello' }

export const chat = (url: string, body: string | object = hello, headers = {}) =>
  callOllama(url, 'chat', body, headers)
export const generate = (url: string, body: string | object = question) => callOllama(url, 'generate', body)
export const show = (url: string, body: string | object) => callOllama(url, 'show', body)
export const get = (url: string, path: string, init: RequestInit = {}) => fetch(`${url}/api/${path}`, init)

export const saying = (...messages: readonly object[]): object => ({ model: 'tiny', messages, stream: false })
export const whole = (fields: object): object => ({ ...hello, stream: false, ...fields })
export const withOptions = (options: object): object => whole({ options })

export const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
export const notEmpty = expect.stringMatching(/./)

export const firstKeys = ['model', 'created_at']
export const statistics = [
  'total_duration',
  'load_duration',
  'prompt_eval_count',
  'prompt_eval_duration',
  'eval_count',
  'eval_duration',
]

type Piece = Extract<GenerateEvent, { type: 'text' | 'reasoning' }>
export const text = (text: string): Piece => ({ type: 'text', text, tokens: 1 })
export const thought = (text: string): Piece => ({ type: 'reasoning', text, tokens: 1 })

/** An engine with fixed events, including token ids and timings that `scriptedEngine()` cannot report. */
export function engineOf(
  pieces: readonly Piece[],
  end: Partial<Extract<GenerateEvent, { type: 'end' }>> = {},
) {
  const requests: GenerateRequest[] = []
  const engine: Engine = {
    ...scriptedEngine(''),
    async *generate(request) {
      requests.push(request)
      yield {
        type: 'start',
        model: request.model,
        inputTokens: 7,
        reusedTokens: 5,
        ...uncached,
        fingerprint: 'fp',
      }
      yield* pieces
      yield {
        type: 'end',
        finishReason: 'stop',
        usage: { inputTokens: 7, reusedTokens: 5, ...uncached, outputTokens: pieces.length },
        timings: { loadMs: 2, promptMs: 0.5, generateMs: 4.000_001 },
        ...(request.returnTokens && { tokens: [1, 2, 3] }),
        ...end,
      }
    },
  }
  return { engine, requests }
}

/** An engine that records loads and unloads. */
export function loader() {
  const told: unknown[] = []
  const engine = scriptedEngine('Hello there.')
  const load: Engine['load'] = async (model, { contextSize, keepAlive }) => {
    told.push(['load', model, { contextSize, keepAlive }])
  }
  const unload: Engine['unload'] = async (model) => void told.push(['unload', model])
  return { engine: { ...engine, load, unload }, told }
}

/** An engine for which every model is missing. */
export function nobody(): Engine {
  const fail = async (model: string): Promise<never> => {
    throw new LlmError('not_found', `model "${model}" not found`, { param: 'model', model })
  }
  return {
    ...scriptedEngine(({ model }) => new LlmError('not_found', 'Not found.', { model })),
    embed: ({ model }) => fail(model),
    load: fail,
    unload: fail,
  }
}

export const isLoaded = (name: string, expiresAt: LoadedModel['expiresAt']): LoadedModel => ({
  name,
  state: 'ready',
  contextSize: 4_096,
  sizeBytes: 5_000_000,
  gpuBytes: 1_000_000,
  expiresAt,
})

/** Creates a folder of models that exists until the test ends. */
export function folderOf(
  files: Readonly<Record<string, readonly [content: Buffer, modifiedAt: string]>>,
): string {
  const folder = mkdtempSync(join(tmpdir(), 'modelmount-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, [content, modifiedAt]] of Object.entries(files)) {
    writeFileSync(join(folder, name), content)
    utimesSync(join(folder, name), new Date(modifiedAt), new Date(modifiedAt))
  }
  return folder
}
export const plain = gguf([
  textEntry('general.architecture', 'llama'),
  textEntry('tokenizer.chat_template', '{{ messages }}'),
])
export const encoder = gguf([textEntry('general.architecture', 'bert'), countEntry('bert.pooling_type', 1)])

export const conversations = (engine: ScriptedEngine) =>
  engine.requests.map(({ input }) =>
    toTemplateMessages(input).map(({ role, content }) => [
      role,
      ...content.map((part) => ('text' in part ? part.text : '')),
    ]),
  )

/** Sends a call, expects a 200, and resolves with the request that reached the engine. */
export async function asked(
  url: string,
  { requests }: { readonly requests: readonly GenerateRequest[] },
  body: object,
) {
  const response = await ('prompt' in body ? generate(url, body) : chat(url, body))
  expect([response.status, await response.text()]).toEqual([200, notEmpty])
  return requests.at(-1) as GenerateRequest
}

/** Splits a list into its last item and the items before it. */
export function endOf<T>(items: readonly T[]): readonly [before: readonly T[], last: T] {
  return [items.slice(0, -1), items.at(-1) as T]
}
