/** The end of a prompt: an assistant message that stays open for the model to continue, or the start of an answer. */
import type { Message, PromptEnd } from '../engine/request.ts'
import { isContinuable } from '../engine/request-input.ts'

/** Marks the end of an open message, because templates trim messages and append closing tokens. */
const endMark = '\uE000'

/** Returns the end of a prompt. A message that cannot be continued is followed by a new answer. */
export function resolvePromptEnd(messages: readonly Message[], requested: PromptEnd = 'continue'): PromptEnd {
  return requested === 'continue' && !isContinuable(messages) ? 'generation-prompt' : requested
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
