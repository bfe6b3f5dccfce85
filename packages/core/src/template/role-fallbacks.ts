/** In which turns the same conversation can be said: templates refuse some of them. */
import { mergeTurns } from '../engine/merge-turns.ts'
import type { Message } from '../engine/request.ts'

export interface RoleFallback {
  readonly messages: readonly Message[]
  /** Whether there may be a message of the system. */
  readonly supportsSystemRole: boolean
}

/**
 * As they are; with user and assistant in turn, and the system in front alone; at last without one: the user says its words.
 * Clients begin with a greeting of the assistant, and put a system in the middle.
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

/** @param systemCount up to which message the system may speak */
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
