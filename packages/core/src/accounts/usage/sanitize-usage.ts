/** Corrects reported usage before it is charged, because a custom engine may report invalid numbers. */
import type { TokenUsage } from '../../engine/events.ts'

/** Rounds to a whole number from 0 on. Counts an invalid number as 0. */
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
