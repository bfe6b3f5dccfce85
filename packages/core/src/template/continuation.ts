/** Continuation: a trailing assistant message without tool calls stays open, so that the model continues it. */
import type { Message } from '../engine/request.ts'

/** Marks the end of the last message, since templates trim messages and append closing tokens. */
const endMark = '\uE000'

export function isContinued(messages: readonly Message[]): boolean {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.content.every(({ type }) => type !== 'tool-call')
}

/** Appends the end mark to the last message. */
export const appendEndMark = <M extends { readonly content: string }>(messages: readonly M[]): readonly M[] =>
  messages.map((message, index) =>
    index === messages.length - 1 ? { ...message, content: message.content.trimEnd() + endMark } : message,
  )

/** Cuts the rendered text at the end mark of an open message. Repairs unpaired surrogates from variables and schemas. */
export function toPrompt(rendered: string, { isContinued }: { readonly isContinued: boolean }): string {
  const end = isContinued ? rendered.lastIndexOf(endMark) : -1
  return (end === -1 ? rendered : rendered.slice(0, end)).toWellFormed()
}
