/** Remembers which replicas have evaluated which prefixes of prompts. */
import { LRUCache } from 'lru-cache'
import type { HashedPrompt, PrefixBlock } from './prefix-blocks.ts'

/** Blocks of about 200 bytes each. */
const maxBlocks = 100_000
/** Tokens of common instructions below which it does not matter where they were evaluated before. */
const minCommonTokens = 256

interface KnownBlock {
  /** Ids of the caches that have the prefix. */
  readonly caches: Set<number>
  /** Tokens that prompts had beyond this block, when it was the longest known part of them. */
  tokensBeyond: number
}

export interface PrefixMatch {
  /** Tokens of the prompt that a cache has, by the id of the cache. */
  readonly cachedTokens: ReadonlyMap<number, number>
  /** Whether the prompt goes to a replica that has its longest known prefix. Otherwise, another one should get the prefix, too. */
  readonly prefersCached: boolean
}

export class PrefixMemory {
  readonly #blocks = new LRUCache<string, KnownBlock>({ max: maxBlocks })

  /**
   * Finds the caches that have a prefix of the prompt.
   *
   * A prefix of many conversations, such as instructions, is worth evaluating on more replicas, but one of few
   * conversations is not. So a prefix may be on one replica more each time that the prompts which continue it in
   * different ways have as many tokens of their own as the prefix has. At that point, the costs of another
   * evaluation are at most as high as what its conversations cost anyway.
   */
  match({ blocks, key }: HashedPrompt): PrefixMatch {
    const cachedTokens = new Map<number, number>()
    let longest: (KnownBlock & { readonly tokens: number; readonly isOwn: boolean }) | undefined
    // Blocks before the key are those of other conversations, too.
    let isOwn = true
    for (const { hash, tokens } of blocks.toReversed()) {
      const known = this.#blocks.peek(hash)
      if (known) {
        longest ??= { ...known, tokens, isOwn }
        for (const id of known.caches) if (!cachedTokens.has(id)) cachedTokens.set(id, tokens)
      }
      if (hash === key) isOwn = false
    }
    return {
      cachedTokens,
      prefersCached:
        longest !== undefined &&
        (longest.isOwn || longest.tokens >= minCommonTokens) &&
        longest.caches.size >= 1 + Math.floor(longest.tokensBeyond / longest.tokens),
    }
  }

  /** Notes that a cache gets the whole prompt. */
  add({ blocks, tokens }: HashedPrompt, cacheId: number): void {
    const longest = blocks.findLast(({ hash }) => this.#blocks.has(hash))
    for (const block of blocks) this.#get(block).caches.add(cacheId)
    if (longest) this.#get(longest).tokensBeyond += tokens - longest.tokens
  }

  #get({ hash }: PrefixBlock): KnownBlock {
    const known = this.#blocks.get(hash) ?? { caches: new Set<number>(), tokensBeyond: 0 }
    this.#blocks.set(hash, known)
    return known
  }
}
