/** `llm.chat()`: turns a prompt into a request, and events into text. */
import { setMaxListeners } from 'node:events'
import type { Caller } from '../accounts/auth/caller.ts'
import { collect, type GenerateResult } from '../engine/events.ts'
import type { GenerateRequest, Message, Sampling } from '../engine/request.ts'
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

/**
 * Returns the text of an answer, in pieces. The answer begins at the first pull. It is cancelled when the
 * reader stops or the signal aborts, even during a pull.
 */
function streamText(
  start: (signal: AbortSignal) => Promise<Generation>,
  signal: AbortSignal | undefined,
): AsyncIterableIterator<string> {
  const controller = new AbortController()
  const pieces = readPieces(start, signal, controller)
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: () => pieces.next(),
    return: () => {
      // A generator alone would not stop before the pull that it waits for.
      controller.abort()
      return pieces.return(undefined)
    },
  }
}

/** @param controller aborted when the answer ends, and when `signal` aborts */
async function* readPieces(
  start: (signal: AbortSignal) => Promise<Generation>,
  signal: AbortSignal | undefined,
  controller: AbortController,
): AsyncGenerator<string, undefined> {
  const abort = (): void => controller.abort()
  if (signal) {
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, signal)
    if (signal.aborted) return
    signal.addEventListener('abort', abort, { once: true })
  }
  try {
    for await (const event of await start(controller.signal)) if (event.type === 'text') yield event.text
  } catch (cause) {
    if (!controller.signal.aborted) throw cause
  } finally {
    signal?.removeEventListener('abort', abort)
    abort()
  }
}

function toMessages(input: ChatPrompt): readonly Message[] {
  const messages = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input
  if (!Array.isArray(messages))
    throw new TypeError('Expected a text, or a list of messages with `role` and `content`')
  return messages.map(({ role, content }) => ({ role, content: [{ type: 'text', text: content }] }))
}
