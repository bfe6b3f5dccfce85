/** The token counts of a call, as limits and the ledger receive them. */
import type { TokenUsage } from '../../engine/events.ts'

/** `outputTokens` counts the tokens that the reader got. Only these are charged. */
export interface CallUsage extends TokenUsage {
  /** Output tokens that were generated, but that the reader did not get. */
  readonly undeliveredTokens: number
}

/** What the rate limits of tokens count. */
export interface TokenCounts {
  /** All tokens of the input and the output. */
  readonly tokens: number
  /** Tokens of the input that are not read from the prompt cache. */
  readonly inputTokens: number
  readonly outputTokens: number
}

export const noTokens: TokenCounts = { tokens: 0, inputTokens: 0, outputTokens: 0 }

export function tokenCountsOf(usage: CallUsage): TokenCounts {
  const outputTokens = usage.outputTokens + usage.undeliveredTokens
  const inputTokens = usage.inputTokens - usage.cacheReadTokens
  return { tokens: usage.inputTokens + outputTokens, inputTokens, outputTokens }
}

export const addTokenCounts = (a: TokenCounts, b: TokenCounts): TokenCounts => ({
  tokens: a.tokens + b.tokens,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
})

export const addTokenUsage = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  reusedTokens: a.reusedTokens + b.reusedTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  cacheWriteTokens: {
    '5m': a.cacheWriteTokens['5m'] + b.cacheWriteTokens['5m'],
    '1h': a.cacheWriteTokens['1h'] + b.cacheWriteTokens['1h'],
  },
  outputTokens: a.outputTokens + b.outputTokens,
})

export const addUsage = (a: CallUsage, b: CallUsage): CallUsage => ({
  ...addTokenUsage(a, b),
  undeliveredTokens: a.undeliveredTokens + b.undeliveredTokens,
})

/** The usage of a further answer to a prompt, which is charged with the first answer. */
export const withoutPrompt = <Usage extends TokenUsage>(usage: Usage): Usage => ({
  ...usage,
  inputTokens: 0,
  reusedTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: { '5m': 0, '1h': 0 },
})

/** Rounds to a whole number from 0 on. Counts an invalid number, such as of a custom engine, as 0. */
export const sanitizeTokenCount = (tokens: number): number =>
  tokens > 0 && Number.isFinite(tokens) ? Math.round(tokens) : 0

/** Corrects the usage that an engine reports. All output counts as delivered. */
export const sanitizeUsage = (usage: TokenUsage): CallUsage => ({
  inputTokens: sanitizeTokenCount(usage.inputTokens),
  // No part of the prompt is reused twice.
  reusedTokens: Math.min(sanitizeTokenCount(usage.reusedTokens), sanitizeTokenCount(usage.inputTokens)),
  cacheReadTokens: sanitizeTokenCount(usage.cacheReadTokens),
  cacheWriteTokens: {
    '5m': sanitizeTokenCount(usage.cacheWriteTokens['5m']),
    '1h': sanitizeTokenCount(usage.cacheWriteTokens['1h']),
  },
  outputTokens: sanitizeTokenCount(usage.outputTokens),
  undeliveredTokens: 0,
})
