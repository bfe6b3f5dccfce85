/** What an engine says that it has used, as it is charged: an engine of the app's own may say anything. */
import type { TokenUsage } from '../../engine/events.ts'

/** A whole number from 0 on. */
export const toCount = (tokens: number): number =>
  tokens > 0 && Number.isFinite(tokens) ? Math.round(tokens) : 0

export const toCounted = (usage: TokenUsage): TokenUsage => ({
  inputTokens: toCount(usage.inputTokens),
  reusedTokens: toCount(usage.reusedTokens),
  cacheReadTokens: toCount(usage.cacheReadTokens),
  cacheWriteTokens: {
    '5m': toCount(usage.cacheWriteTokens['5m']),
    '1h': toCount(usage.cacheWriteTokens['1h']),
  },
  outputTokens: toCount(usage.outputTokens),
})
