/**
 * How far the reader of an answer is behind, for backpressure. The model process counts the tokens that it sends,
 * and the app reports those that are consumed.
 */
import type { GenerateEvent } from '../../events.ts'

/** The app and the model process must count alike. */
export const countEventTokens = (event: GenerateEvent): number =>
  'tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0

/**
 * A suspended answer resumes when its reader has less than this part of the read-ahead unread. To suspend and to
 * resume stops all answers for a moment, so a slow reader must not cause it for each token that it takes. The app
 * reports as many tokens at a time: with larger reports, the last tokens of the read-ahead might not be reported,
 * and the answer would never resume.
 */
const resumePart = 1 / 4

/** In the model process: the unread tokens of one answer. */
export class ReaderLag {
  readonly #readAheadTokens: number
  #unreadTokens = 0

  /** @param readAheadTokens number of unread tokens at which the answer pauses */
  constructor(readAheadTokens = Number.POSITIVE_INFINITY) {
    this.#readAheadTokens = readAheadTokens
  }

  onSent(event: GenerateEvent): void {
    this.#unreadTokens += countEventTokens(event)
  }

  onConsumed(tokens: number): void {
    this.#unreadTokens -= tokens
  }

  /** Whether decoding pauses. A suspended answer pauses until the reader has taken most of the read-ahead. */
  isBackpressured({ isSuspended }: { readonly isSuspended: boolean }): boolean {
    return this.#unreadTokens >= this.#readAheadTokens * (isSuspended ? resumePart : 1)
  }
}

/** In the app: returns a function that reports consumed tokens in batches. */
export function createConsumptionReporter(
  readAheadTokens: number,
  report: (tokens: number) => void,
): (tokens: number) => void {
  let unreported = 0
  return (tokens) => {
    unreported += tokens
    if (unreported < readAheadTokens * resumePart) return
    report(unreported)
    unreported = 0
  }
}
