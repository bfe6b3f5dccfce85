/** Conversations with a fleet, whose turns are interleaved, and what of them replicas find in their caches. */
import type { Llm } from '@modelmount/core'

export interface ConversationTotals {
  calls: number
  /** Tokens that a prompt has in common with the turn before and its answer. */
  prefixTokens: number
  /** Those that the replica has found in its cache. */
  foundTokens: number
  inputTokens: number
}

interface Conversation {
  readonly id: number
  readonly messages: { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]
  turns: number
  /** Tokens of the last prompt and its answer. */
  tokens: number
}

interface ConversationSettings {
  readonly model: string
  readonly conversations: number
  readonly turns: number
  /** Calls that run at the same time. */
  readonly parallel: number
}

const instructions =
  'You are a friendly assistant on a small machine. Answer in one or two sentences. If you do not know something, say so.'
const topics = ['rivers', 'numbers', 'colours', 'the days of the week', 'a story about Ann', 'local models']

/** Runs all turns of all conversations. The next turn is always one of a random conversation that waits. */
export async function runConversations(
  llm: Llm,
  { model, conversations: count, turns, parallel }: ConversationSettings,
  random: () => number,
): Promise<ConversationTotals> {
  const totals: ConversationTotals = { calls: 0, prefixTokens: 0, foundTokens: 0, inputTokens: 0 }
  const waiting = Array.from(
    { length: count },
    (_, id): Conversation => ({
      ...{ id, turns: 0, tokens: 0 },
      messages: [{ role: 'system', content: instructions }],
    }),
  )
  const runTurn = async (conversation: Conversation): Promise<void> => {
    const { id, messages } = conversation
    const topic = topics[Math.floor(random() * topics.length)]
    messages.push({
      role: 'user',
      content: `My number is ${id}, and this is question ${conversation.turns}. What can you tell me about ${topic}?`,
    })
    const { text, usage } = await llm.as({ id: `user${id % 20}` }).chat(messages, { model, maxTokens: 24 })
    messages.push({ role: 'assistant', content: text })
    totals.calls++
    totals.inputTokens += usage.inputTokens
    totals.prefixTokens += conversation.tokens
    totals.foundTokens += Math.min(conversation.tokens, usage.reusedTokens)
    conversation.tokens = usage.inputTokens + usage.outputTokens
    conversation.turns++
  }
  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      const [conversation] = waiting.splice(Math.floor(random() * waiting.length), 1)
      if (!conversation) return
      await runTurn(conversation)
      if (conversation.turns < turns) waiting.push(conversation)
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  return totals
}
