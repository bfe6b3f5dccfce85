/** Turns of one role in a row as one: some APIs mean that by them, and many templates insist on it. */
import type { Message, Part } from './request.ts'

/** With a blank line between their texts. Of turns without content only those of the user stay. */
export function mergeTurns(turns: readonly Message[]): readonly Message[] {
  const merged: MergedTurn[] = []
  for (const { role, content } of turns) {
    if (content.length === 0 && role !== 'user') continue
    if (merged.at(-1)?.role !== role) merged.push({ role, content: [], hasText: false })
    appendParts(merged.at(-1) as MergedTurn, content)
  }
  return merged.map(({ role, content }) => ({
    role,
    content: content.length > 0 ? content : [{ type: 'text', text: '' }],
  }))
}

interface MergedTurn {
  readonly role: Message['role']
  readonly content: Part[]
  hasText: boolean
}

/** Texts side by side are one, as they are; one that ends at a breakpoint ends there, whatever comes behind it. */
function appendParts(turn: MergedTurn, content: readonly Part[]): void {
  let separator = turn.hasText ? '\n\n' : ''
  for (const part of content) {
    if (part.type !== 'text') turn.content.push(part)
    else if (part.text !== '') {
      const last = turn.content.at(-1)
      const text = separator + part.text
      if (last?.type === 'text' && last.cache === undefined)
        turn.content.splice(-1, 1, { ...part, text: last.text + text })
      else turn.content.push({ ...part, text })
      separator = ''
      turn.hasText = true
    }
  }
}
