/** Turns of one role in a row as one: some APIs mean that by them, and many templates insist on it. */
import type { Message, Part } from './request.ts'

/** With a blank line between their texts. Of turns without content only those of the user stay. */
export function mergeTurns(turns: readonly Message[]): readonly Message[] {
  const runs: Run[] = []
  for (const { role, content } of turns) {
    if (content.length === 0 && role !== 'user') continue
    if (runs.at(-1)?.role !== role) runs.push({ role, content: [], hasText: false })
    append(runs.at(-1) as Run, content)
  }
  return runs.map(({ role, content }) => ({
    role,
    content: content.length > 0 ? content : [{ type: 'text', text: '' }],
  }))
}

interface Run {
  readonly role: Message['role']
  readonly content: Part[]
  hasText: boolean
}

/** Texts side by side are one, as they are; one that ends at a breakpoint ends there, whatever comes behind it. */
function append(run: Run, content: readonly Part[]): void {
  let gap = run.hasText ? '\n\n' : ''
  for (const part of content) {
    if (part.type !== 'text') run.content.push(part)
    else if (part.text !== '') {
      const last = run.content.at(-1)
      const text = gap + part.text
      if (last?.type === 'text' && last.cache === undefined)
        run.content.splice(-1, 1, { ...part, text: last.text + text })
      else run.content.push({ ...part, text })
      gap = ''
      run.hasText = true
    }
  }
}
