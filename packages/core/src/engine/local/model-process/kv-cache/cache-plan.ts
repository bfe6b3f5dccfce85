/** What one call takes from the prompt cache, and what it puts there: told when it begins, and corrected where that fails. */
import { cacheWrites, type PromptUsage } from '../../../events.ts'
import type { CacheLifetime } from '../../../request.ts'

/** Behind so many tokens of a prompt its state is kept. */
export interface Breakpoint {
  readonly length: number
  readonly lifetime: CacheLifetime
}

export type Cached = Omit<PromptUsage, 'inputTokens'>

export class CachePlan {
  readonly #reused: number
  readonly #read: number
  #writes: readonly Breakpoint[]

  /**
   * @param reused so many tokens were there
   * @param leased so many of the prompt are kept for a breakpoint of an earlier call
   * @param writes what there is room for; ascending
   */
  constructor(reused: number, leased: number, writes: readonly Breakpoint[]) {
    this.#reused = reused
    this.#read = Math.min(reused, leased)
    this.#writes = writes.filter(({ length }) => length > this.#read)
  }

  /** Where something is to be written. */
  get writes(): readonly Breakpoint[] {
    return this.#writes
  }

  /** It is not written. */
  without(breakpoint: Breakpoint): void {
    this.#writes = this.#writes.filter((one) => one !== breakpoint)
  }

  get cached(): Cached {
    return {
      reusedTokens: this.#reused,
      cacheReadTokens: this.#read,
      cacheWriteTokens: cacheWrites(this.#read, this.#writes),
    }
  }
}
