/** What one call takes from the prompt cache, and what it puts there: told when it begins, and corrected where that fails. */
import { computeCacheWrites, type PromptUsage } from '../../../events.ts'
import type { CacheLifetime } from '../../../request.ts'

/** Behind so many tokens of a prompt its state is kept. */
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
   * @param reusedTokens so many tokens were there
   * @param cachedTokens so many of the prompt are kept for a breakpoint of an earlier call
   * @param writes what there is room for; ascending
   */
  constructor(reusedTokens: number, cachedTokens: number, writes: readonly Breakpoint[]) {
    this.#reusedTokens = reusedTokens
    this.#cacheReadTokens = Math.min(reusedTokens, cachedTokens)
    this.#writes = writes.filter(({ length }) => length > this.#cacheReadTokens)
  }

  /** Where something is to be written. */
  get writes(): readonly Breakpoint[] {
    return this.#writes
  }

  /** It is not written. */
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
