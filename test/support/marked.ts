/** Calls that mark breakpoints, and what comes of them. */
import type { CacheLifetime, GenerateEvent, Message, Part, TokenUsage } from '@modelmount/core/engine'

export interface Marked {
  readonly text: string
  /** What it said when it began. */
  readonly plan: Omit<TokenUsage, 'outputTokens'>
  readonly usage: TokenUsage
  readonly promptMs: number
  /** Of prompt and answer, where they were asked for. */
  readonly tokens: readonly number[]
}

export async function readMarked(
  events: AsyncIterable<GenerateEvent> | Iterable<GenerateEvent>,
): Promise<Marked> {
  let text = ''
  let plan: Marked['plan'] | undefined
  for await (const event of events) {
    if (event.type === 'start') {
      const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens } = event
      plan = { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens }
    }
    if (event.type === 'text') text += event.text
    if (event.type === 'end' && plan) {
      const { usage, timings, tokens = [] } = event
      return { text, plan, usage, promptMs: timings.promptMs, tokens }
    }
  }
  throw new Error('The answer did not end.')
}

export const part = (text: string, cache?: CacheLifetime): Part => ({
  type: 'text',
  text,
  ...(cache && { cache }),
})

export const message = (role: string, text: string, cache?: CacheLifetime): Message => ({
  role,
  content: [part(text, cache)],
})

/** About 14 tokens each for the built-in model, others from each number on. */
export const notes = (count: number, first: number): string =>
  Array.from({ length: count }, (_, note) => `Note ${first + note}: box ${7 * first + note}.`).join(' ')

/** Read, then written for five minutes, then for an hour. */
export const cached = ({
  usage: { cacheReadTokens, cacheWriteTokens },
}: Pick<Marked, 'usage'>): readonly [number, number, number] => [
  cacheReadTokens,
  cacheWriteTokens['5m'],
  cacheWriteTokens['1h'],
]
