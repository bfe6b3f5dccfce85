/** In which turns the same conversation can be said: templates refuse some of them. */
import { mergeTurns } from '../engine/merge-turns.ts'
import type { Message } from '../engine/request.ts'

export interface Turns {
  readonly messages: readonly Message[]
  /** Whether there may be a message of the system. */
  readonly takesSystem: boolean
}

/**
 * As they are; with user and assistant in turn, and the system in front alone; at last without one: the user says its words.
 * Clients begin with a greeting of the assistant, and put a system in the middle.
 */
export function* turnsOf(messages: readonly Message[]): Generator<Turns> {
  const front = Math.max(
    0,
    messages.findIndex(({ role }) => role !== 'system'),
  )
  yield { messages, takesSystem: true }
  yield { messages: inTurn(messages, front), takesSystem: true }
  yield { messages: inTurn(messages, 0), takesSystem: false }
}

const nothing: Message = { role: 'user', content: [{ type: 'text', text: '' }] }

/** @param front up to which message the system may speak */
function inTurn(messages: readonly Message[], front: number): readonly Message[] {
  const [system, turns] = [messages.slice(0, front), messages.slice(front)]
  const asked = turns.map((message) => (message.role === 'system' ? { ...message, role: 'user' } : message))
  return mergeTurns([...system, ...(asked[0]?.role === 'assistant' ? [nothing] : []), ...asked])
}
