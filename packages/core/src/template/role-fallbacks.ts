/** Alternative role sequences of a conversation, since templates reject some sequences. */
import { mergeTurns } from '../engine/merge-turns.ts'
import type { Message } from '../engine/request.ts'

export interface RoleFallback {
  readonly messages: readonly Message[]
  /** Whether the messages can include a system message. */
  readonly supportsSystemRole: boolean
}

/**
 * Yields the messages unchanged, then with alternating user and assistant roles after the leading system messages,
 * then with system messages as user messages. Some clients start with an assistant message or put system messages later.
 */
export function* listRoleFallbacks(messages: readonly Message[]): Generator<RoleFallback> {
  const systemCount = Math.max(
    0,
    messages.findIndex(({ role }) => role !== 'system'),
  )
  yield { messages, supportsSystemRole: true }
  yield { messages: alternateRoles(messages, systemCount), supportsSystemRole: true }
  yield { messages: alternateRoles(messages, 0), supportsSystemRole: false }
}

const emptyUserMessage: Message = { role: 'user', content: [{ type: 'text', text: '' }] }

/** @param systemCount number of leading system messages to keep */
function alternateRoles(messages: readonly Message[], systemCount: number): readonly Message[] {
  const [system, turns] = [messages.slice(0, systemCount), messages.slice(systemCount)]
  const withoutSystem = turns.map((message) =>
    message.role === 'system' ? { ...message, role: 'user' } : message,
  )
  return mergeTurns([
    ...system,
    ...(withoutSystem[0]?.role === 'assistant' ? [emptyUserMessage] : []),
    ...withoutSystem,
  ])
}
