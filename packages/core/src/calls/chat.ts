/** An answer without HTTP: from a question to a request, and from events to text. */
import type { Caller } from '../accounts/auth/caller.ts'
import type { GenerateRequest, Message, Sampling } from '../engine/request.ts'
import { readAhead } from '../util/read-ahead.ts'
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
  /** Who asks: comes under limits, and pays. @default nobody */
  readonly caller?: Caller
}

/** Throws a `TypeError` for what is no prompt. */
export function toChatRequest(
  input: ChatPrompt,
  model: string,
  { maxTokens, stop, ...sampling }: Omit<ChatOptions, 'model' | 'signal' | 'caller'>,
): GenerateRequest {
  return {
    model,
    input: { kind: 'chat', messages: toMessages(input) },
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    sampling,
  }
}

/** Who stops reading, or leaves, ends the answer at once: that is what `readAhead` does for the engine, too. */
export const streamText = (
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
