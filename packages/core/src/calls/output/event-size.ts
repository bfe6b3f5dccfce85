/** Estimates how much memory a buffered event takes. */
import type { GenerateEvent, PromptToken } from '../../engine/events.ts'

/**
 * Bytes of an event, and of one token with its log probability, on 64-bit Node.js 20 to 24. Rounded up from
 * measurements.
 */
const eventBytes = 128
const logprobBytes = 224

/** Returns bytes. Each character counts as two bytes, the larger of its two possible sizes. */
export function estimateBytes(event: GenerateEvent | { readonly type: 'failure' }): number {
  switch (event.type) {
    case 'text':
    case 'reasoning':
      return eventBytes + 2 * event.text.length + (event.logprobs ? sumTokens(event.logprobs) : 0)
    case 'tool-arguments':
      return eventBytes + 2 * event.json.length
    case 'prompt':
      return eventBytes + sumTokens(event.tokens)
    case 'end':
      return 4 * eventBytes + 8 * (event.tokens?.length ?? 0)
    default:
      return 4 * eventBytes
  }
}

const sumTokens = (tokens: readonly PromptToken[]): number =>
  tokens.reduce((sum, { top }) => sum + (1 + top.length) * logprobBytes, 0)
