/**
 * Keeps the tokens of counted prompts of one app. The prompt of a caller with a spending limit is counted
 * before it is answered, and need not be rendered and tokenized again.
 */
import { LRUCache } from 'lru-cache'
import type { Token } from 'node-llama-cpp'

/** Total number of tokens. They take 8 MB of memory. */
const maxTokens = 1_000_000
/** How long the tokens are kept, in ms. The answer usually follows at once. */
const keptMs = 60_000

export class CountedPrompts {
  /** Tokens by the id of the call that counted them. */
  readonly #prompts: LRUCache<number, readonly Token[]>

  /** @param now clock in ms. It must not return 0, which lru-cache treats as "no lifetime". */
  constructor(now = () => performance.now()) {
    this.#prompts = new LRUCache<number, readonly Token[]>({
      maxSize: maxTokens,
      sizeCalculation: ({ length }) => Math.max(1, length),
      ttl: keptMs,
      ttlResolution: 0,
      perf: { now },
    })
  }

  add(callId: number, tokens: readonly Token[]): void {
    this.#prompts.set(callId, tokens)
  }

  /** Returns the tokens, and keeps them no longer. */
  take(callId: number): readonly Token[] | undefined {
    const tokens = this.#prompts.get(callId)
    this.#prompts.delete(callId)
    return tokens
  }
}
