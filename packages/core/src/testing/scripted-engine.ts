/** An engine that says what it was told to: for tests of an app, without a model. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Embeddings, EmbedRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type { DrawnToken, FinishReason, GenerateEvent, PromptToken } from '../engine/events.ts'
import { type GenerateRequest, type Message, messagesOf } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import { checkKeys } from '../options/check.ts'
import { prefixesOf, ScriptedCache } from './scripted-cache.ts'

/** What is said, or a function of the request that says it. A list is said piece by piece; an error ends the answer. */
export type Script = Say | ((request: GenerateRequest) => Say | Promise<Say>)
export type Say = string | LlmError | readonly Piece[]

/** Logprobs are told to who asks for them, and no more alternatives than that. */
export type Piece =
  | string
  | LlmError
  | { readonly text: string; readonly logprobs?: readonly DrawnToken[] }
  | { readonly reasoning: string; readonly logprobs?: readonly DrawnToken[] }
  /** Told to who asks for the logprobs of the prompt. */
  | { readonly prompt: readonly PromptToken[] }
  | ScriptedCall

export interface ScriptedCall {
  /** The name of the tool. */
  readonly call: string
  /** @default `call_` and its number, from 0 */
  readonly id?: string
  /** A list is JSON in pieces; if it is not an object when they are joined, the call was broken off. @default {} */
  readonly arguments?: object | readonly string[]
}

export interface ScriptedEngineOptions {
  /** Waits so long before each piece, in milliseconds. @default 0 */
  readonly delayMs?: number
  /**
   * How many tokens a prompt and its answer may have together, as it is told of the models that were asked; a longer prompt is answered
   * all the same. @default 4,096
   */
  readonly contextSize?: number
  /** The clock of the prompt cache, in milliseconds. @default Date.now */
  readonly now?: () => number
}

export interface ScriptedEngine extends Engine {
  /** What was asked, in order. */
  readonly requests: readonly GenerateRequest[]
  /** How many answers are being made right now. */
  readonly running: number
}

/**
 * A text is said word by word; each piece counts as one token, and so does each of a call's arguments; the prompt has one
 * a message and one a tool. What a prompt has up to a breakpoint is kept for the next, as by a real cache, of any length: see
 * `ScriptedCache`. A vector has 8 numbers, made of the text; a document ranks by the words that it has of the query; tokens
 * are the code points of a text. A model that was asked is loaded until somebody unloads it.
 */
export function scriptedEngine(script: Script, options: ScriptedEngineOptions = {}): ScriptedEngine {
  if (typeof script !== 'function') check(script)
  checkKeys('', options, ['contextSize', 'delayMs', 'now'])
  const { contextSize = 4_096, delayMs = 0, now = Date.now } = options
  const cache = new ScriptedCache(now)
  const requests: GenerateRequest[] = []
  /** Those that somebody asked, and how large their contexts are. */
  const models = new Map<string, number>()
  const use = (model: string, size = models.get(model) ?? contextSize): void => void models.set(model, size)
  let running = 0

  async function* generate(
    request: GenerateRequest,
    { signal, tenant = '' }: EngineCall,
  ): AsyncGenerator<GenerateEvent> {
    requests.push(request)
    use(request.model)
    running++
    try {
      const said = typeof script === 'function' ? check(await script(request)) : script
      const pieces = typeof said === 'string' ? words(said) : Array.isArray(said) ? said : [said]
      const [first] = pieces
      const startedAt = performance.now()
      if (isError(first)) throw first
      const usage = cache.use(request, tenant)
      yield { type: 'start', model: request.model, ...usage, fingerprint: 'fp_scripted' }

      const calls: string[] = []
      let outputTokens = 0
      let isCut = request.maxTokens === 0
      for (const event of events(pieces, request)) {
        const isSaid = isError(event) || event.type !== 'prompt'
        isCut ||= isSaid && outputTokens === request.maxTokens
        if (isCut && isSaid) break
        if (delayMs > 0) await delay(delayMs, undefined, { signal }).catch(() => {})
        if (signal.aborted) return
        if (isError(event)) throw event
        if (event.type === 'tool-call') calls.push('')
        else if (isSaid) outputTokens++
        if (event.type === 'tool-arguments') calls[event.index] += event.json
        yield event
      }

      const incompleteCalls = [...calls.keys()].filter((index) => !isObject(calls[index] ?? ''))
      const isCalling = calls.length > 0 && incompleteCalls.length === 0
      const reason: FinishReason = isCut ? 'length' : isCalling ? 'tool-calls' : 'stop'
      yield {
        type: 'end',
        reason,
        usage: { ...usage, outputTokens },
        timings: { loadMs: 0, promptMs: 0, generateMs: performance.now() - startedAt },
        ...(incompleteCalls.length > 0 && { incompleteCalls }),
      }
    } finally {
      running--
    }
  }

  return {
    generate,
    countTokens: async ({ model, input }) => {
      use(model)
      return prefixesOf(input).tokens
    },
    render: async ({ input }) => messagesOf(input).map(textOf).join('\n'),
    embed: async (request) => embeddings(request),
    rerank: async ({ query, documents }) => ({
      scores: documents.map((document) => share(wordsOf(query), wordsOf(document))),
      inputTokens: documents.reduce((sum, document) => sum + toTokens(query + document).length, 0),
    }),
    tokenize: async ({ text }) => toTokens(text),
    detokenize: async ({ tokens }) => toText(tokens),
    load: async (model, { contextSize }) => use(model, contextSize),
    unload: async (model) => void models.delete(model),
    requests,
    get running() {
      return running
    },
    loaded: () => [...models].map(([name, contextSize]) => ({ ...inMemory, name, contextSize })),
    close: async () => {},
  }
}

const inMemory = { state: 'ready', sizeBytes: 0, gpuBytes: 0, expiresAt: 'never' } as const

const textOf = ({ content }: Message): string =>
  content.map((part) => ('text' in part ? part.text : '')).join('')

/** With the spaces in front: joined, they are the text again. */
const words = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? []

type Spoken = Exclude<GenerateEvent, { type: 'start' | 'end' }>

function* events(pieces: readonly Piece[], request: GenerateRequest): Generator<Spoken | LlmError> {
  const { logprobs, promptLogprobs } = request
  let index = 0
  for (const piece of pieces) {
    if (isError(piece)) yield piece
    else if (typeof piece === 'string') yield { type: 'text', text: piece, tokens: 1 }
    else if ('text' in piece) yield { type: 'text', text: piece.text, tokens: 1, ...told(piece, logprobs) }
    else if ('reasoning' in piece)
      yield { type: 'reasoning', text: piece.reasoning, tokens: 1, ...told(piece, logprobs) }
    else if ('call' in piece) yield* callEvents(piece, index++)
    else if (promptLogprobs)
      yield { type: 'prompt', tokens: piece.prompt.map((one) => cut(one, logprobs ?? 0)) }
  }
}

function* callEvents(piece: ScriptedCall, index: number): Generator<Spoken> {
  const { call: name, id = `call_${index}`, arguments: said = {} } = piece
  yield { type: 'tool-call', index, id, name }
  const pieces: readonly string[] = Array.isArray(said) ? said : [JSON.stringify(said)]
  for (const json of pieces) yield { type: 'tool-arguments', index, json, tokens: 1 }
}

const told = (
  { logprobs }: { readonly logprobs?: readonly DrawnToken[] },
  alternatives: number | undefined,
): { logprobs?: readonly DrawnToken[] } =>
  logprobs && alternatives !== undefined
    ? { logprobs: logprobs.map((token) => cut(token, alternatives)) }
    : {}

const cut = <Token extends PromptToken>(token: Token, alternatives: number): Token => ({
  ...token,
  top: token.top.slice(0, alternatives),
})

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function embeddings({ inputs, dimensions = 8 }: EmbedRequest): Embeddings {
  const all = inputs.map((input) => (typeof input === 'string' ? toTokens(input) : input))
  const vectors = all.map((tokens) => vectorOf(tokens).slice(0, dimensions)).map(unit)
  return { vectors, inputTokens: all.reduce((sum, { length }) => sum + length, 0), loadMs: 0, totalMs: 0 }
}

/** Another for each text, and for its words in another order. */
function vectorOf(tokens: readonly number[]): readonly number[] {
  const vector = [1, 0, 0, 0, 0, 0, 0, 0]
  for (const [index, token] of tokens.entries())
    vector[index % 8] = (((vector[index % 8] ?? 0) * 31 + token) % 997) + 1
  return vector
}

function unit(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}

/** How many of some words are among others, from 0 to 1. */
const share = (some: readonly string[], others: readonly string[]): number =>
  some.length === 0 ? 0 : some.filter((word) => others.includes(word)).length / some.length

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
const toTokens = (text: string): readonly number[] => [...text].map((one) => one.codePointAt(0) ?? 0)
const toText = (tokens: readonly number[]): string => String.fromCodePoint(...tokens)

/** Of any copy of this package. */
const isError = (piece: unknown): piece is LlmError => LlmError.from(piece) === piece

const textKeys = ['text', 'reasoning', 'call'] as const

const isPiece = (piece: unknown): boolean =>
  typeof piece === 'string' ||
  isError(piece) ||
  (typeof piece === 'object' &&
    piece !== null &&
    (textKeys.some((key) => typeof (piece as Record<string, unknown>)[key] === 'string') ||
      Array.isArray((piece as { readonly prompt?: unknown }).prompt)))

function check(said: unknown): Say {
  if (typeof said === 'string' || isError(said) || (Array.isArray(said) && said.every(isPiece)))
    return said as Say
  throw new TypeError(
    `Expected a script to say a text, an LlmError or a list of texts, thoughts, calls and LlmErrors, got ${typeof said}`,
  )
}
