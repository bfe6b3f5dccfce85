/** Counts the tokens of one answer: those that the engine has generated, and those that the reader has taken. */
import { type CallUsage, sanitizeTokenCount, sanitizeUsage } from '../../accounts/usage/call-usage.ts'
import type { GenerateEvent } from '../../engine/events.ts'

type RunningUsage = { -readonly [Field in keyof CallUsage]: CallUsage[Field] }

export class AnswerUsage {
  /** One object for all events, since an object per token costs as much as rendering the token. */
  #usage: RunningUsage | undefined

  /** Undefined before the `start` event. Changes with each event. */
  get current(): CallUsage | undefined {
    return this.#usage
  }

  onGenerated(event: GenerateEvent): void {
    if (event.type === 'start') {
      const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens } = event
      this.#usage = sanitizeUsage({
        inputTokens,
        reusedTokens,
        cacheReadTokens,
        cacheWriteTokens,
        outputTokens: 0,
      })
    } else if (event.type === 'end') {
      const usage = sanitizeUsage(event.usage)
      const outputTokens = Math.min(this.#usage?.outputTokens ?? 0, usage.outputTokens)
      this.#usage = { ...usage, outputTokens, undeliveredTokens: usage.outputTokens - outputTokens }
    } else if (this.#usage) this.#usage.undeliveredTokens += tokensOf(event)
  }

  /** With the `end` event, the reader has taken all tokens, also those without text. */
  onTaken(event: GenerateEvent): void {
    const usage = this.#usage
    if (!usage) return
    const { undeliveredTokens } = usage
    const tokens = event.type === 'end' ? undeliveredTokens : Math.min(tokensOf(event), undeliveredTokens)
    usage.outputTokens += tokens
    usage.undeliveredTokens -= tokens
  }
}

export const tokensOf = (event: GenerateEvent): number =>
  'tokens' in event && typeof event.tokens === 'number' ? sanitizeTokenCount(event.tokens) : 0
