/** `llm.chat()`: turns a prompt into a request, and events into text. */
import type { Caller } from '../accounts/auth/caller.ts'
import { collect, type GenerateResult } from '../engine/events.ts'
import type { GenerateRequest, Message, Sampling } from '../engine/request.ts'
import { readAhead } from '../util/read-ahead.ts'
import type { LlmClient, ModelOptional } from './client.ts'
import type { Generation } from './generation.ts'

/** One user message, or a whole conversation. */
export type ChatPrompt =
  | string
  | readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]

export interface ChatOptions extends Sampling {
  /** @default the app's own model if it has exactly one, or the built-in model if it has none */
  readonly model?: string
  readonly maxTokens?: number
  readonly stop?: readonly string[]
  readonly signal?: AbortSignal
  /** Limits and spending are counted for this caller. @default none: the app itself */
  readonly caller?: Caller
  /** Id of the end user behind the caller, for the limits `perEndUser` of the caller. @default none */
  readonly endUser?: string
}

export interface Chat {
  /**
   * Generates one answer without HTTP. With `stream: true`, yields the text in pieces. Throws `LlmError`.
   * When `signal` aborts, a stream ends without an error. Without `stream`, the promise rejects with an
   * `AbortError`.
   */
  (input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  (input: ChatPrompt, options?: ChatOptions & { readonly stream?: false }): Promise<GenerateResult>
}

export function createChat(clientFor: (options: ChatOptions) => Pick<LlmClient, 'generate'>): Chat {
  const start = async (input: ChatPrompt, options: ChatOptions, stream: boolean): Promise<Generation> => {
    const { signal = new AbortController().signal, endUser } = options
    return clientFor(options).generate(toChatRequest(input, options), { signal, stream, endUser })
  }
  function chat(input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  function chat(
    input: ChatPrompt,
    options?: ChatOptions & { readonly stream?: false },
  ): Promise<GenerateResult>
  function chat(
    input: ChatPrompt,
    options: ChatOptions & { readonly stream?: boolean } = {},
  ): AsyncIterable<string> | Promise<GenerateResult> {
    const { stream = false, ...call } = options
    if (!stream) return start(input, call, false).then(collect)
    return streamText((signal) => start(input, { ...call, signal }, true), call.signal)
  }
  return chat
}

/** Throws a `TypeError` for an invalid prompt. */
function toChatRequest(
  input: ChatPrompt,
  { model, maxTokens, stop, signal, caller, endUser, ...sampling }: ChatOptions,
): ModelOptional<GenerateRequest> {
  return {
    ...(model !== undefined && { model }),
    input: { kind: 'chat', messages: toMessages(input) },
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    sampling,
  }
}

/** Yields the text of an answer. The engine stops generating when the reader stops reading. */
const streamText = (
  start: (signal: AbortSignal) => Promise<Generation>,
  signal: AbortSignal = new AbortController().signal,
): AsyncIterable<string> =>
  readAhead(signal, async (push, stopped) => {
    for await (const event of await start(stopped)) if (event.type === 'text') push(event.text)
  })

function toMessages(input: ChatPrompt): readonly Message[] {
  const messages = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input
  if (!Array.isArray(messages))
    throw new TypeError('Expected a text, or a list of messages with `role` and `content`')
  return messages.map(({ role, content }) => ({ role, content: [{ type: 'text', text: content }] }))
}
