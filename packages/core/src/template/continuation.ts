/** Continuation: a trailing assistant message without tool calls stays open for the model to continue. */
import type { Message } from '../engine/request.ts'

/** Marks the end of an open message, because templates trim messages and append closing tokens. */
const endMark = '\uE000'

export function isContinued(messages: readonly Message[]): boolean {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.content.every(({ type }) => type !== 'tool-call')
}

/** Trims the end of the last message and appends the end mark. */
export const appendEndMark = <M extends { readonly content: string }>(messages: readonly M[]): readonly M[] =>
  messages.map((message, index) =>
    index === messages.length - 1 ? { ...message, content: message.content.trimEnd() + endMark } : message,
  )

/**
 * Cuts the rendered text at the end mark of an open message. Replaces unpaired surrogates, which template
 * variables and tool schemas can contain.
 */
export function toPrompt(rendered: string, { isContinued }: { readonly isContinued: boolean }): string {
  const end = isContinued ? rendered.lastIndexOf(endMark) : -1
  return (end === -1 ? rendered : rendered.slice(0, end)).toWellFormed()
}
