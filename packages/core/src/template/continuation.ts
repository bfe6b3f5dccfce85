/** A trailing assistant message is left open, to be continued, unless it calls tools. */
import type { Message } from '../engine/request.ts'

/** Templates trim messages and close them with tokens of their own, so where the last one ends is marked. */
const endMark = '\uE000'

export function isContinued(messages: readonly Message[]): boolean {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.content.every(({ type }) => type !== 'tool-call')
}

/** The last one with a mark at its end. */
export const appendEndMark = <M extends { readonly content: string }>(messages: readonly M[]): readonly M[] =>
  messages.map((message, index) =>
    index === messages.length - 1 ? { ...message, content: message.content.trimEnd() + endMark } : message,
  )

/** What a template has said, up to where an open message ends. Variables and schemas are as they came: half a character is none in UTF-8. */
export function toPrompt(rendered: string, { isContinued }: { readonly isContinued: boolean }): string {
  const end = isContinued ? rendered.lastIndexOf(endMark) : -1
  return (end === -1 ? rendered : rendered.slice(0, end)).toWellFormed()
}
