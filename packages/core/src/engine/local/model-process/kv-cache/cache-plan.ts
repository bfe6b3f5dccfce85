/**
 * Prompt cache usage of one call. It is reported when the call starts, and again when a planned write fails.
 */
import { computeCacheWrites, type PromptUsage } from '../../../events.ts'
import type { CacheLifetime } from '../../../request.ts'

/** A position in a prompt up to which the KV state is cached. `length` counts the tokens before it. */
export interface Breakpoint {
  readonly length: number
  readonly lifetime: CacheLifetime
}

export type CacheUsage = Omit<PromptUsage, 'inputTokens'>

export class CachePlan {
  readonly #reusedTokens: number
  readonly #cacheReadTokens: number
  #writes: readonly Breakpoint[]

  /**
   * @param reusedTokens number of prompt tokens that need no evaluation
   * @param cachedTokens number of prompt tokens that are cached for a breakpoint of an earlier call
   * @param writes breakpoints that the cache has room for, in ascending order
   */
  constructor(reusedTokens: number, cachedTokens: number, writes: readonly Breakpoint[]) {
    this.#reusedTokens = reusedTokens
    this.#cacheReadTokens = Math.min(reusedTokens, cachedTokens)
    this.#writes = writes.filter(({ length }) => length > this.#cacheReadTokens)
  }

  get writes(): readonly Breakpoint[] {
    return this.#writes
  }

  dropWrite(breakpoint: Breakpoint): void {
    this.#writes = this.#writes.filter((one) => one !== breakpoint)
  }

  get usage(): CacheUsage {
    return {
      reusedTokens: this.#reusedTokens,
      cacheReadTokens: this.#cacheReadTokens,
      cacheWriteTokens: computeCacheWrites(this.#cacheReadTokens, this.#writes),
    }
  }
}
