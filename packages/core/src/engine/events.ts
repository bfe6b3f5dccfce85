/** What an engine says while it answers, in nobody's dialect. */

/**
 * One `start`, then pieces in order, then one `end`. Each piece carries the tokens it
 * took, so that an abandoned answer can be metered exactly.
 */
export type GenerateEvent =
  | {
      readonly type: 'start'
      readonly model: string
      readonly inputTokens: number
      readonly reusedTokens: number
      /** Changes with the weights and the settings of the engine. */
      readonly fingerprint: string
    }
  | { readonly type: 'text'; readonly text: string; readonly tokens: number }
  | { readonly type: 'reasoning'; readonly text: string; readonly tokens: number }
  | {
      readonly type: 'end'
      readonly reason: FinishReason
      readonly stopSequence?: string
      readonly usage: TokenUsage
      readonly timings: Timings
      /** Prompt and answer, with the token that ended it, where `returnTokens` asked for them. */
      readonly tokens?: readonly number[]
    }

/** `context`: the context was full. `length`: `maxTokens` was reached. */
export type FinishReason = 'stop' | 'length' | 'context'

/** Counted from what was evaluated, never from what was asked. */
export interface TokenUsage {
  /** The whole prompt. */
  readonly inputTokens: number
  /** Prompt tokens whose state was already there. */
  readonly reusedTokens: number
  readonly outputTokens: number
}

export interface Timings {
  readonly loadMs: number
  readonly promptMs: number
  readonly generateMs: number
}

/** A whole answer. */
export interface Answer {
  readonly text: string
  /** What the model thought first, where it did and that was asked to be told apart. */
  readonly reasoning?: string
  readonly reason: FinishReason
  /** The one that ended it, where one did. */
  readonly stopSequence?: string
  readonly usage: TokenUsage
  readonly timings: Timings
  readonly tokens?: readonly number[]
  readonly fingerprint: string
}

/** Waits for the end of an answer. Throws an `AbortError` when it was cancelled before. */
export async function collect(events: AsyncIterable<GenerateEvent>): Promise<Answer> {
  let text = ''
  let reasoning = ''
  let fingerprint = ''
  for await (const event of events) {
    if (event.type === 'start') fingerprint = event.fingerprint
    else if (event.type === 'text') text += event.text
    else if (event.type === 'reasoning') reasoning += event.text
    else {
      const { type: _, ...end } = event
      return { text, ...(reasoning !== '' && { reasoning }), ...end, fingerprint }
    }
  }
  throw new DOMException('The answer was cancelled.', 'AbortError')
}
