/** An engine with scripted answers, to test an app without a model. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Embeddings, EmbedRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type {
  GenerateEvent,
  GenerationProgress,
  PromptToken,
  PromptUsage,
  SampledToken,
} from '../engine/events.ts'
import type { GenerateRequest, Message } from '../engine/request.ts'
import { toTemplateMessages } from '../engine/request-input.ts'
import { contextDenied, LlmError } from '../errors.ts'
import type { ModelDetails } from '../models/gguf/model-details.ts'
import type { Model } from '../models/model.ts'
import { checkBoolean, checkKeys, checkStrings } from '../options/check.ts'
import { isRecord } from '../util/is-record.ts'
import { tryParseJson } from '../util/try-parse-json.ts'
import { prefixesOf, ScriptedCache } from './scripted-cache.ts'

/**
 * An answer, or a function that returns the answer to a request. Each item of a list is streamed as one
 * chunk. An error is thrown and ends the answer.
 */
export type Script = ScriptedAnswer | ((request: GenerateRequest) => ScriptedAnswer | Promise<ScriptedAnswer>)
/** An answer: its text, the error that it fails with, or its chunks. */
export type ScriptedAnswer = string | LlmError | readonly ScriptedChunk[]

/**
 * A part of an answer. Its logprobs are emitted only if the request asks for logprobs, with at most the
 * requested number of alternatives.
 */
export type ScriptedChunk =
  | string
  | LlmError
  | { readonly text: string; readonly logprobs?: readonly SampledToken[] }
  | { readonly reasoning: string; readonly logprobs?: readonly SampledToken[] }
  /** Emitted only if the request asks for logprobs of the prompt. */
  | { readonly prompt: readonly PromptToken[] }
  | ScriptedToolCall

/** A tool call in an answer. */
export interface ScriptedToolCall {
  /** The name of the tool. */
  readonly call: string
  /** Id of the call. @default `call_0`, `call_1` and so on */
  readonly id?: string
  /**
   * An object, or its JSON in pieces. If the joined pieces are not a JSON object, the tool call is reported
   * as incomplete.
   *
   * @default {}
   */
  readonly arguments?: object | readonly string[]
}

/** Options of `scriptedEngine()`. */
export interface ScriptedEngineOptions {
  /** Delay before each chunk, in milliseconds. @default 0 */
  readonly delayMs?: number
  /**
   * Context size that is reported for loaded models, in tokens. The engine does not enforce it.
   *
   * @default 4,096
   */
  readonly contextSize?: number
  /**
   * Names of the models that the engine knows, for an engine of the option `engines`. It then finds and lists them.
   *
   * @default none: the engine answers for each name that a call has
   */
  readonly models?: readonly string[]
  /** Whether its models see images. Scripts get them as parts of the request. @default false */
  readonly seesImages?: boolean
  /** The clock of the prompt cache, in milliseconds. @default Date.now */
  readonly now?: () => number
}

/** An engine for tests, which answers from a script and records its requests. */
export interface ScriptedEngine extends Engine {
  /** Requests received so far, in order. */
  readonly requests: readonly GenerateRequest[]
  /** Number of answers in progress. */
  readonly running: number
}

/**
 * Creates an engine that needs no model. It counts tokens, caches prompts and embeds by simple rules:
 * - A text is streamed word by word. Each chunk of text or reasoning counts as one output token, and so does
 *   each piece of a call's arguments.
 * - A prompt has one token per message and one per tool. It is cached up to its breakpoints: see
 *   `ScriptedCache`.
 * - `tokenize` returns the code points of a text.
 * - An embedding has 8 numbers, computed from the text.
 * - The score of a document is the share of the query's words that the document contains.
 * - The first request loads a model. The model stays loaded until `unload`. The load reports no progress.
 */
export function scriptedEngine(script: Script, options: ScriptedEngineOptions = {}): ScriptedEngine {
  if (typeof script !== 'function') checkAnswer(script)
  checkKeys('', options, ['contextSize', 'delayMs', 'models', 'now', 'seesImages'])
  if (options.models !== undefined) checkStrings('models', options.models)
  checkBoolean('seesImages', options.seesImages)
  const { contextSize = 4_096, delayMs = 0, now = Date.now, seesImages = false } = options
  const requests: GenerateRequest[] = []
  /** Context size of each loaded model, by name. */
  const models = new Map<string, number>()
  const markLoaded = (model: string, size = models.get(model) ?? contextSize): void =>
    void models.set(model, size)
  const cache = new ScriptedCache(now)
  const runner = new ScriptRunner(script, delayMs, cache, (request) => {
    requests.push(request)
    markLoaded(request.model)
  })

  return {
    generate: (request, call) => runner.run(request, call),
    countTokens: async ({ model, input }) => {
      markLoaded(model)
      return prefixesOf(input).tokens
    },
    seesImages: () => seesImages,
    countCachedTokens: async (request, { tenant = '' }) => cache.cachedLength(request, tenant),
    render: async ({ input }) => toTemplateMessages(input).map(textOf).join('\n'),
    embed: async (request) => createEmbeddings(request),
    rerank: async ({ query, documents }) => ({
      scores: documents.map((document) => wordOverlap(wordsOf(query), wordsOf(document))),
      inputTokens: documents.reduce((sum, document) => sum + toTokens(query + document).length, 0),
    }),
    tokenize: async ({ text }) => toTokens(text),
    detokenize: async ({ tokens }) => toText(tokens),
    tokenPieces: async ({ tokens }) => tokens.map((token) => toText([token])),
    load: async (model, { contextSize, defaultContextSize }, { requestedContextSize = 0 }) => {
      markLoaded(model, contextSize ?? defaultContextSize)
      if (requestedContextSize > (models.get(model) ?? 0)) throw contextDenied(requestedContextSize)
    },
    unload: async (model) => void models.delete(model),
    requests,
    get running() {
      return runner.running
    },
    loaded: () => [...models].map(([name, contextSize]) => ({ ...loadedState, name, contextSize })),
    close: async () => {},
    ...(options.models && listScriptedModels(options.models, contextSize, seesImages)),
  }
}

/** @param contextSize in tokens */
function listScriptedModels(
  names: readonly string[],
  contextSize: number,
  seesImages: boolean,
): Pick<Required<Engine>, 'findModel' | 'listModels'> {
  const details: ModelDetails = {
    architecture: 'scripted',
    capabilities: [
      'completion',
      'embedding',
      'tools',
      'thinking',
      ...(seesImages ? (['vision'] as const) : []),
    ],
    contextSize,
    ...{ parameterCount: 0, parameterSize: '', quantization: 'unknown', metadata: {}, tensors: [] },
  }
  const models = names.map(
    (name): Model => ({
      ...{ name, path: '', sizeBytes: 0, modifiedAt: new Date(0), digest: '', isBuiltIn: false, details },
    }),
  )
  return {
    findModel: (name) => models.find((model) => model.name === name),
    listModels: async () => models,
  }
}

/** Streams the script's answer to each request. */
class ScriptRunner {
  readonly #script: Script
  readonly #delayMs: number
  readonly #cache: ScriptedCache
  readonly #onRequest: (request: GenerateRequest) => void
  running = 0

  constructor(
    script: Script,
    delayMs: number,
    cache: ScriptedCache,
    onRequest: (request: GenerateRequest) => void,
  ) {
    this.#script = script
    this.#delayMs = delayMs
    this.#cache = cache
    this.#onRequest = onRequest
  }

  async *run(
    request: GenerateRequest,
    { signal, tenant = '', onProgress }: EngineCall,
  ): AsyncGenerator<GenerateEvent> {
    this.#onRequest(request)
    this.running++
    try {
      const chunks = await this.#chunksFor(request)
      const startedAt = performance.now()
      const [first] = chunks
      if (LlmError.is(first)) throw first
      const usage = this.#cache.use(request, tenant)
      yield { type: 'start', model: request.model, ...usage, fingerprint: 'fp_scripted' }
      for (const progress of toProgress(usage)) {
        onProgress?.(progress)
        if (request.returnProgress) yield { type: 'progress', ...progress }
      }

      const output: Output = { tokens: 0, calls: [], isTruncated: request.maxTokens === 0 }
      for (const event of toEvents(chunks, request)) {
        if (exceedsLimit(event, output, request.maxTokens)) break
        if (this.#delayMs > 0) await delay(this.#delayMs, undefined, { signal }).catch(() => {})
        if (signal.aborted) return
        if (LlmError.is(event)) throw event
        addToOutput(event, output)
        const timings = { promptMs: 0, generateMs: performance.now() - startedAt }
        yield request.returnTimings && 'tokens' in event && event.type !== 'prompt'
          ? { ...event, timings }
          : event
      }
      yield toEndEvent(output, usage, performance.now() - startedAt)
    } finally {
      this.running--
    }
  }

  async #chunksFor(request: GenerateRequest): Promise<readonly ScriptedChunk[]> {
    const script = this.#script
    const answer = typeof script === 'function' ? checkAnswer(await script(request)) : script
    if (typeof answer === 'string') return splitWords(answer)
    return LlmError.is(answer) ? [answer] : answer
  }
}

/** The output of a request so far. */
interface Output {
  tokens: number
  /** The arguments of each tool call, as JSON. */
  readonly calls: string[]
  isTruncated: boolean
}

/** Whether `maxTokens` ends the answer before this event. Prompt tokens do not count. */
function exceedsLimit(
  event: ScriptedEvent | LlmError,
  output: Output,
  maxTokens: number | undefined,
): boolean {
  if (!LlmError.is(event) && event.type === 'prompt') return false
  output.isTruncated ||= output.tokens === maxTokens
  return output.isTruncated
}

function addToOutput(event: ScriptedEvent, output: Output): void {
  if (event.type === 'tool-call') output.calls.push('')
  else if (event.type !== 'prompt') output.tokens++
  if (event.type === 'tool-arguments') output.calls[event.index] += event.json
}

function toEndEvent(
  { tokens: outputTokens, calls, isTruncated }: Output,
  usage: PromptUsage,
  generateMs: number,
): GenerateEvent {
  const incompleteCalls = [...calls.keys()].filter((index) => !isRecord(tryParseJson(calls[index] ?? '')))
  const isCalling = calls.length > 0 && incompleteCalls.length === 0
  return {
    type: 'end',
    finishReason: isTruncated ? 'length' : isCalling ? 'tool-calls' : 'stop',
    usage: { ...usage, outputTokens },
    timings: { loadMs: 0, promptMs: 0, generateMs },
    ...(incompleteCalls.length > 0 && { incompleteCalls }),
  }
}

const loadedState = { state: 'ready', sizeBytes: 0, gpuBytes: 0, expiresAt: 'never' } as const

const textOf = ({ content }: Message): string =>
  content.map((part) => ('text' in part ? part.text : '')).join('')

/** Splits a text into words, each with the white space before the word. */
const splitWords = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? []

/** The prompt is evaluated in one step. */
const toProgress = ({
  inputTokens: total,
  reusedTokens: cached,
}: PromptUsage): readonly GenerationProgress[] =>
  [...new Set([cached, total])].map((processed) => ({ phase: 'prompt', total, cached, processed, ms: 0 }))

type ScriptedEvent = Exclude<GenerateEvent, { type: 'start' | 'progress' | 'end' }>

function* toEvents(
  chunks: readonly ScriptedChunk[],
  request: GenerateRequest,
): Generator<ScriptedEvent | LlmError> {
  const { logprobs, promptLogprobs } = request
  let index = 0
  for (const chunk of chunks) {
    if (LlmError.is(chunk)) yield chunk
    else if (typeof chunk === 'string') yield { type: 'text', text: chunk, tokens: 1 }
    else if ('text' in chunk)
      yield { type: 'text', text: chunk.text, tokens: 1, ...selectLogprobs(chunk, logprobs) }
    else if ('reasoning' in chunk)
      yield { type: 'reasoning', text: chunk.reasoning, tokens: 1, ...selectLogprobs(chunk, logprobs) }
    else if ('call' in chunk) yield* toCallEvents(chunk, index++)
    else if (promptLogprobs)
      yield { type: 'prompt', tokens: chunk.prompt.map((one) => limitAlternatives(one, logprobs ?? 0)) }
  }
}

function* toCallEvents(toolCall: ScriptedToolCall, index: number): Generator<ScriptedEvent> {
  const { call: name, id = `call_${index}`, arguments: args = {} } = toolCall
  yield { type: 'tool-call', index, id, name }
  const chunks: readonly string[] = Array.isArray(args) ? args : [JSON.stringify(args)]
  for (const json of chunks) yield { type: 'tool-arguments', index, json, tokens: 1 }
}

const selectLogprobs = (
  { logprobs }: { readonly logprobs?: readonly SampledToken[] },
  alternatives: number | undefined,
): { logprobs?: readonly SampledToken[] } =>
  logprobs && alternatives !== undefined
    ? { logprobs: logprobs.map((token) => limitAlternatives(token, alternatives)) }
    : {}

const limitAlternatives = <Token extends PromptToken>(token: Token, alternatives: number): Token => ({
  ...token,
  top: token.top.slice(0, alternatives),
})

function createEmbeddings({ inputs, dimensions = 8 }: EmbedRequest): Embeddings {
  const all = inputs.map((input) => (typeof input === 'string' ? toTokens(input) : input))
  const embeddings = all.map((tokens) => vectorOf(tokens).slice(0, dimensions)).map(normalize)
  return { embeddings, inputTokens: all.reduce((sum, { length }) => sum + length, 0), loadMs: 0, totalMs: 0 }
}

/** Embedding of a token sequence. It depends on the order of the tokens. */
function vectorOf(tokens: readonly number[]): readonly number[] {
  const vector = [1, 0, 0, 0, 0, 0, 0, 0]
  for (const [index, token] of tokens.entries())
    vector[index % 8] = (((vector[index % 8] ?? 0) * 31 + token) % 997) + 1
  return vector
}

function normalize(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}

/** The share of the words in `some` that `others` contains, from 0 to 1. */
const wordOverlap = (some: readonly string[], others: readonly string[]): number =>
  some.length === 0 ? 0 : some.filter((word) => others.includes(word)).length / some.length

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
const toTokens = (text: string): readonly number[] => [...text].map((one) => one.codePointAt(0) ?? 0)
const toText = (tokens: readonly number[]): string => String.fromCodePoint(...tokens)

const textKeys = ['text', 'reasoning', 'call'] as const

const isScriptedChunk = (chunk: unknown): boolean =>
  typeof chunk === 'string' ||
  LlmError.is(chunk) ||
  (typeof chunk === 'object' &&
    chunk !== null &&
    (textKeys.some((key) => typeof (chunk as Record<string, unknown>)[key] === 'string') ||
      Array.isArray((chunk as { readonly prompt?: unknown }).prompt)))

function checkAnswer(answer: unknown): ScriptedAnswer {
  if (
    typeof answer === 'string' ||
    LlmError.is(answer) ||
    (Array.isArray(answer) && answer.every(isScriptedChunk))
  )
    return answer as ScriptedAnswer
  throw new TypeError(
    `Expected a scripted answer: a text, an LlmError, or a list of texts, reasoning, tool calls and LlmErrors, got ${typeof answer}`,
  )
}
