/** Bounds the number and the total size of calls in the engine, running and queued. Divides both among tenants. */
import { invalidRequest, LlmError } from '../../../errors.ts'

export interface CallCapOptions {
  readonly maxCalls: number
  /** Total length of the prompts of all running and queued requests, in characters. */
  readonly maxPromptCharacters: number
}

interface CallTotals {
  calls: number
  characters: number
}

/**
 * A tenant may use everything while the others need nothing. When they come, each gets an equal share, and at
 * least one call. So the totals exceed the bounds until the calls of the first tenant have ended.
 *
 * That has bounds, too. At most `maxCalls` tenants have calls. While there are twice `maxCalls` calls, a tenant gets
 * only its first one, so there are at most three times as many calls. When the prompts are longer than twice
 * `maxPromptCharacters`, each tenant gets only its smallest share: `maxPromptCharacters / maxCalls`. All smallest
 * shares together are `maxPromptCharacters` at most, and so is the prompt that exceeds the double. So the total
 * stays within four times `maxPromptCharacters`.
 */
export class CallCap {
  readonly #options: CallCapOptions
  readonly #total: CallTotals = { calls: 0, characters: 0 }
  /** Tenants that have calls. */
  readonly #byTenant = new Map<string, CallTotals>()

  constructor(options: CallCapOptions) {
    this.#options = options
  }

  /** Whether only calls of tenants without calls are still admitted. */
  get isFull(): boolean {
    return this.#total.calls >= this.#options.maxCalls
  }

  /**
   * Throws an `LlmError` `overloaded` at once when a bound is exceeded, and `invalid_request` for a prompt that
   * never fits.
   */
  async run<T>(tenant: string, characters: number, task: () => Promise<T>): Promise<T> {
    const { maxPromptCharacters } = this.#options
    if (characters > maxPromptCharacters) throw promptTooLong(characters, maxPromptCharacters)
    const own = this.#byTenant.get(tenant) ?? { calls: 0, characters: 0 }
    if (!this.#isAdmitted(own, characters))
      throw new LlmError('overloaded', 'Too many calls are waiting. Try again later.', {
        retryAfterMs: 5_000,
      })
    this.#byTenant.set(tenant, own)
    this.#add(own, 1, characters)
    try {
      return await task()
    } finally {
      this.#add(own, -1, -characters)
      if (own.calls === 0) this.#byTenant.delete(tenant)
    }
  }

  #isAdmitted(own: CallTotals, characters: number): boolean {
    const { maxCalls, maxPromptCharacters } = this.#options
    const hasRoom = ({ calls, characters: used }: CallTotals, tenants: number): boolean =>
      calls + 1 <= maxCalls / tenants && used + characters <= maxPromptCharacters / tenants
    if (hasRoom(this.#total, 1)) return true
    const isSmall = own.characters + characters <= maxPromptCharacters / maxCalls
    if (this.#total.characters > 2 * maxPromptCharacters && !isSmall) return false
    const tenants = this.#byTenant.size
    if (own.calls === 0) return tenants < maxCalls
    return this.#total.calls < 2 * maxCalls && hasRoom(own, tenants)
  }

  #add(own: CallTotals, calls: number, characters: number): void {
    for (const totals of [own, this.#total]) {
      totals.calls += calls
      totals.characters += characters
    }
  }
}

const promptTooLong = (characters: number, maxPromptCharacters: number): LlmError =>
  invalidRequest(
    `The prompt has ${characters} characters. The limit is ${maxPromptCharacters} (\`local.maxPromptCharacters\`).`,
  )
