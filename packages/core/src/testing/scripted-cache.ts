/** Simulates a prompt cache without a model, for tests of metering and limits. */
import { computeCacheWrites, type PromptUsage, uncached } from '../engine/events.ts'
import { type CacheLifetime, cacheLifetimes, type GenerateRequest } from '../engine/request.ts'
import { toTemplateMessages } from '../engine/request-input.ts'

/**
 * Caches the prefixes of prompts that end at a breakpoint. Each tool and each message counts as one token. A
 * prefix includes the tool or message that contains the breakpoint. `use` looks up the longest cached prefix
 * of the prompt, for the same tenant and model. Then it caches the prompt's other prefixes.
 */
export class ScriptedCache {
  readonly #now: () => number
  #cached: readonly CachedPrefix[] = []

  /** @param now returns the current time, in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Looks up a prompt and caches it. Returns how many of its tokens were read from the cache and written to
   * it.
   */
  use({ model, input }: GenerateRequest, tenant: string): PromptUsage {
    const { tokens: inputTokens, breakpoints } = prefixesOf(input)
    const last = breakpoints.at(-1)
    if (!last) return { inputTokens, reusedTokens: 0, ...uncached }

    const now = this.#now()
    this.#cached = this.#cached.filter(({ expiresAt }) => expiresAt > now)
    const hits = this.#hitsOf(last, model, tenant)
    const readTokens = lengthOf(hits)
    for (const hit of hits) hit.expiresAt = now + cacheLifetimes[hit.lifetime]
    const written = breakpoints
      .filter(({ text }) => !hits.some((hit) => hit.text === text))
      .map((one) => ({ ...one, tenant, model, expiresAt: now + cacheLifetimes[one.lifetime] }))
    this.#cached = [...this.#cached, ...written]

    return {
      inputTokens,
      reusedTokens: readTokens,
      cacheReadTokens: readTokens,
      cacheWriteTokens: computeCacheWrites(readTokens, breakpoints),
    }
  }

  /** Number of tokens of a prompt that `use` would read now. */
  cachedLength({ model, input }: GenerateRequest, tenant: string): number {
    const last = prefixesOf(input).breakpoints.at(-1)
    const now = this.#now()
    return last ? lengthOf(this.#hitsOf(last, model, tenant).filter(({ expiresAt }) => expiresAt > now)) : 0
  }

  #hitsOf(last: Prefix, model: string, tenant: string): readonly CachedPrefix[] {
    return this.#cached.filter(
      (one) => one.tenant === tenant && one.model === model && last.text.startsWith(one.text),
    )
  }
}

const lengthOf = (hits: readonly Prefix[]): number => Math.max(0, ...hits.map(({ length }) => length))

/** The beginning of a prompt, up to a breakpoint. */
interface Prefix {
  readonly text: string
  /** In tokens. */
  readonly length: number
  readonly lifetime: CacheLifetime
}

interface CachedPrefix extends Prefix {
  readonly tenant: string
  readonly model: string
  /** Expiry time, in milliseconds. Each hit sets it again. */
  expiresAt: number
}

/** Counts the tokens of a prompt and lists its breakpoints in order. */
export function prefixesOf(input: GenerateRequest['input']): {
  readonly tokens: number
  readonly breakpoints: readonly Prefix[]
} {
  const breakpoints: Prefix[] = []
  let text = ''
  let tokens = 0
  const add = (more: string, lifetime: CacheLifetime | undefined): void => {
    text += more
    if (lifetime) breakpoints.push({ text, length: tokens, lifetime })
  }
  for (const { cache, ...tool } of (input.kind === 'chat' && input.tools) || []) {
    tokens++
    add(JSON.stringify(tool), cache)
  }
  for (const { role, content } of toTemplateMessages(input)) {
    tokens++
    text += `\0${role}\0`
    // Adjacent texts are joined, since their boundaries must not affect the cache.
    for (const { cache, ...part } of content)
      add(part.type === 'text' ? part.text : JSON.stringify(part), cache)
  }
  return { tokens, breakpoints }
}
