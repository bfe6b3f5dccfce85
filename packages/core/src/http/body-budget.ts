/** Limits the memory that request bodies take, per caller and in total. */
import { LlmError } from '../errors.ts'
import type { BodyAllowance, HttpRequest, HttpResponse } from './message.ts'

export interface BodyLimits {
  /** Memory for the bodies of all callers, in bytes. */
  readonly maxBytes: number
  /** Memory for the bodies of one caller, in bytes. At most half of `maxBytes`. */
  readonly maxBytesPerCaller: number
  /** How long a client may pause before its body is complete, in ms. */
  readonly stallTimeoutMs: number
}

export class BodyBudget {
  readonly limits: BodyLimits
  /** Reserved bytes by caller. */
  readonly #reserved = new Map<string, number>()
  #totalBytes = 0

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  /** Memory that is reserved now, in bytes. */
  get reservedBytes(): number {
    return this.#totalBytes
  }

  /** Runs a handler, which may read the body. The memory stays reserved until the response is over. */
  async run(
    request: HttpRequest,
    caller: string,
    handle: (request: HttpRequest) => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const reservation = new BodyReservation(this, caller)
    let isStream = false
    try {
      const response = await handle({
        ...request,
        json: (defaultBody) => request.json(defaultBody, reservation),
        bytes: () => request.bytes(reservation),
      })
      isStream = response.body !== null && typeof response.body !== 'string'
      // The call of a stream may still wait in a queue, with its request in memory.
      if (isStream) whenAborted(request.signal, () => reservation.release())
      return response
    } finally {
      if (!isStream) reservation.release()
    }
  }

  reserve(caller: string, bytes: number): void {
    const { maxBytes, maxBytesPerCaller } = this.limits
    const own = (this.#reserved.get(caller) ?? 0) + bytes
    if (own > maxBytesPerCaller)
      throw new LlmError(
        'rate_limit',
        `The bodies of your running requests would take more than ${maxBytesPerCaller} bytes. Try again when one of them has ended.`,
        { retryAfterMs },
      )
    // A caller never holds more than is free for the others, so a few callers cannot use up all memory.
    if (own > maxBytes - this.#totalBytes - bytes)
      throw new LlmError(
        'overloaded',
        'The bodies of running requests take too much memory. Try again later.',
        { retryAfterMs },
      )
    this.#totalBytes += bytes
    this.#reserved.set(caller, own)
  }

  release(caller: string, bytes: number): void {
    this.#totalBytes -= bytes
    const own = (this.#reserved.get(caller) ?? 0) - bytes
    if (own > 0) this.#reserved.set(caller, own)
    else this.#reserved.delete(caller)
  }
}

/** The memory of one request's body. */
class BodyReservation implements BodyAllowance {
  readonly #budget: BodyBudget
  readonly #caller: string
  #bytes = 0

  constructor(budget: BodyBudget, caller: string) {
    this.#budget = budget
    this.#caller = caller
  }

  get maxBytes(): number {
    return this.#budget.limits.maxBytesPerCaller
  }

  get stallTimeoutMs(): number {
    return this.#budget.limits.stallTimeoutMs
  }

  reserve(bytes: number): void {
    if (bytes === 0) return
    this.#budget.reserve(this.#caller, bytes)
    this.#bytes += bytes
  }

  release(): void {
    if (this.#bytes > 0) this.#budget.release(this.#caller, this.#bytes)
    this.#bytes = 0
  }
}

const retryAfterMs = 1_000

function whenAborted(signal: AbortSignal, callback: () => void): void {
  if (signal.aborted) callback()
  else signal.addEventListener('abort', callback, { once: true })
}
