/** Alternative role sequences of a conversation, for templates that reject the original roles. */
import { mergeTurns } from '../engine/merge-turns.ts'
import type { Message } from '../engine/request.ts'

export interface RoleFallback {
  readonly messages: readonly Message[]
  /** Whether the messages can include a system message. */
  readonly supportsSystemRole: boolean
}

/**
 * First yields the messages unchanged. Then yields them with alternating user and assistant roles after the
 * leading system messages. Last, yields them with every system message as a user message. Some clients start
 * with an assistant message or send system messages later.
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
