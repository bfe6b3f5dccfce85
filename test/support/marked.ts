/** Builds messages with cache breakpoints, and collects the results of their calls. */
import type { CacheLifetime, GenerateEvent, Message, Part, TokenUsage } from '@modelmount/core/engine'

export interface Marked {
  readonly text: string
  /** Token counts of the `start` event. */
  readonly plan: Omit<TokenUsage, 'outputTokens'>
  readonly usage: TokenUsage
  readonly promptMs: number
  /** Ids of the tokens of prompt and answer, if the request asked for them. */
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

/** Numbered sentences, each about 14 tokens for the built-in model. Another `first` gives other sentences. */
export const notes = (count: number, first: number): string =>
  Array.from({ length: count }, (_, note) => `Note ${first + note}: box ${7 * first + note}.`).join(' ')

/** Tokens read from the cache, tokens written to it for 5 minutes, and tokens written for 1 hour. */
export const cached = ({
  usage: { cacheReadTokens, cacheWriteTokens },
}: Pick<Marked, 'usage'>): readonly [number, number, number] => [
  cacheReadTokens,
  cacheWriteTokens['5m'],
  cacheWriteTokens['1h'],
]
