/** Merges consecutive turns of one role. Some APIs define this, and many templates require it. */
import type { Message, Part } from './request.ts'

/** Joins the texts of merged turns with a blank line. Drops empty turns, except those of the user. */
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

/** Joins adjacent texts into one part. A part with a cache breakpoint is not extended. */
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
