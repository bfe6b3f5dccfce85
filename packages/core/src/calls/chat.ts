/** `llm.chat()`: from a question to a request, and from events to text. */
import type { Caller } from '../accounts/auth/caller.ts'
import { collect, type GenerateResult } from '../engine/events.ts'
import type { GenerateRequest, Message, Sampling } from '../engine/request.ts'
import { readAhead } from '../util/read-ahead.ts'
import type { LlmClient, ModelOptional } from './client.ts'
import type { Generation } from './generation.ts'

/** A question, or a whole conversation. */
export type ChatPrompt =
  | string
  | readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]

export interface ChatOptions extends Sampling {
  /** @default your own model if you have just one, the built-in one if you have none */
  readonly model?: string
  readonly maxTokens?: number
  readonly stop?: readonly string[]
  readonly signal?: AbortSignal
  /** The caller that limits and spending are counted by. @default none: the app itself */
  readonly caller?: Caller
}

export interface Chat {
  /**
   * One answer, without HTTP. With `stream: true`, its text piece by piece.
   * Throws `LlmError`; rejects with an `AbortError` when `signal` aborts, while a stream just ends.
   */
  (input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  (input: ChatPrompt, options?: ChatOptions & { readonly stream?: false }): Promise<GenerateResult>
}

export function createChat(clientFor: (options: ChatOptions) => Pick<LlmClient, 'generate'>): Chat {
  const start = async (input: ChatPrompt, options: ChatOptions, stream: boolean): Promise<Generation> => {
    const { signal = new AbortController().signal } = options
    return clientFor(options).generate(toChatRequest(input, options), { signal, stream })
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

/** Throws a `TypeError` for what is no prompt. */
function toChatRequest(
  input: ChatPrompt,
  { model, maxTokens, stop, signal, caller, ...sampling }: ChatOptions,
): ModelOptional<GenerateRequest> {
  return {
    ...(model !== undefined && { model }),
    input: { kind: 'chat', messages: toMessages(input) },
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    sampling,
  }
}

/** The answer ends when its reader stops reading, and so does the engine. */
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
