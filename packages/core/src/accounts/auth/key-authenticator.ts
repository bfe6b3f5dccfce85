/**
 * Finds the callers of API keys, and limits the look-ups of wrong keys by client address. An address may be that of
 * many clients, such as an office or a proxy. So valid keys pass beyond the limit, too: a key that was valid before
 * at once, any other with the next common look-up of its address.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { LlmError } from '../../errors.ts'
import { addressKey } from '../../limits/address.ts'
import { invalidKey } from '../keys/keys.ts'
import type { Caller } from './caller.ts'
import { FailedAuthentications } from './failed-authentications.ts'

/** Returns the callers of all valid keys among these, by secret. */
export type FindCallers = (secrets: readonly string[]) => Promise<ReadonlyMap<string, Caller>>

/** Number of keys that are remembered as valid. */
const maxKnownKeys = 10_000
/** Interval of the look-ups of an address beyond its limit. */
const lookupIntervalMs = 100

/** A look-up that is about to begin, for all keys that arrive from one address until then. */
interface CommonLookup {
  readonly secrets: Set<string>
  readonly callers: Promise<ReadonlyMap<string, Caller>>
}

export class KeyAuthenticator {
  readonly #findCallers: FindCallers
  readonly #failures: FailedAuthentications
  /** Hashes of secrets that were valid at their last use. */
  readonly #known = new LRUCache<string, true>({ max: maxKnownKeys })
  readonly #lookups = new Map<string, CommonLookup>()

  constructor(findCallers: FindCallers, maxFailuresPerMinute: number) {
    this.#findCallers = findCallers
    this.#failures = new FailedAuthentications(maxFailuresPerMinute)
  }

  /**
   * Returns the caller of a valid key. Rejects with an `LlmError` for a wrong key: `authentication`, or `rate_limit`
   * if too many came from its address before.
   */
  async authenticate(secret: string, clientAddress: string | undefined): Promise<Caller> {
    const hash = createHash('sha256').update(secret).digest('base64')
    if (this.#known.get(hash)) {
      const caller = await this.#find(secret)
      if (caller) return caller
      this.#known.delete(hash)
    }
    const address = addressKey(clientAddress)
    // Counted before the look-up, so that keys that arrive together are limited, too.
    const retryAfterMs = this.#failures.count(address)
    let isWrong = false
    try {
      const caller = await (retryAfterMs > 0 ? this.#findSoon(secret, address) : this.#find(secret))
      isWrong = caller === undefined
      if (!caller) throw retryAfterMs > 0 ? tooManyFailures(retryAfterMs) : invalidKey()
      this.#known.set(hash, true)
      return caller
    } finally {
      if (!isWrong && retryAfterMs === 0) this.#failures.uncount(address)
    }
  }

  async #find(secret: string): Promise<Caller | undefined> {
    return (await this.#findCallers([secret])).get(secret)
  }

  async #findSoon(secret: string, address: string): Promise<Caller | undefined> {
    const lookup = this.#lookups.get(address) ?? this.#planLookup(address)
    lookup.secrets.add(secret)
    return (await lookup.callers).get(secret)
  }

  #planLookup(address: string): CommonLookup {
    const secrets = new Set<string>()
    const interval = new Promise((resolve) => setTimeout(resolve, lookupIntervalMs))
    const callers = interval.then(() => {
      this.#lookups.delete(address)
      return this.#findCallers([...secrets])
    })
    const lookup = { secrets, callers }
    this.#lookups.set(address, lookup)
    return lookup
  }
}

const tooManyFailures = (retryAfterMs: number): LlmError =>
  new LlmError(
    'rate_limit',
    'Invalid API key, and too many from this address before. Valid keys are still accepted.',
    { retryAfterMs },
  )
