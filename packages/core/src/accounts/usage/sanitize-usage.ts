/** Makes the usage that an engine reports safe to charge: a custom engine may report anything. */
import type { TokenUsage } from '../../engine/events.ts'

/** A whole number from 0 on. */
export const sanitizeTokenCount = (tokens: number): number =>
  tokens > 0 && Number.isFinite(tokens) ? Math.round(tokens) : 0

export const sanitizeUsage = (usage: TokenUsage): TokenUsage => ({
  inputTokens: sanitizeTokenCount(usage.inputTokens),
  reusedTokens: sanitizeTokenCount(usage.reusedTokens),
  cacheReadTokens: sanitizeTokenCount(usage.cacheReadTokens),
  cacheWriteTokens: {
    '5m': sanitizeTokenCount(usage.cacheWriteTokens['5m']),
    '1h': sanitizeTokenCount(usage.cacheWriteTokens['1h']),
  },
  outputTokens: sanitizeTokenCount(usage.outputTokens),
})
