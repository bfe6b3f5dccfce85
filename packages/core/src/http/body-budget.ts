/** Limits the memory that request bodies and whole answers take, per tenant and in total. */
import { LlmError } from '../errors.ts'
import type { BodyAllowance, HttpRequest, HttpResponse } from './message.ts'
import { whenAborted } from './when-sent.ts'

export interface BodyLimits {
  /** Memory for bodies and answers of all tenants, in bytes. An eighth more is kept for the first 64 KiB of each. */
  readonly maxBytes: number
  /** Memory for bodies and answers of one tenant, in bytes. At most half of `maxBytes`. */
  readonly maxBytesPerTenant: number
  /** How long a client may pause before its body is complete, in ms. */
  readonly stallTimeoutMs: number
}

/**
 * Bytes of a tenant that do not count towards `maxBytes`. Otherwise, tenants that announce large bodies and send
 * nothing could together leave no memory for the small bodies of others.
 */
const floorBytes = 64 * 1024
/** Part of `maxBytes` that the floors of all tenants may take in addition. Tenants beyond that have no floor. */
const floorShare = 1 / 8

/** Length of an answer that is not counted, in characters. The operating system has room for it. */
const freeAnswerLength = 16 * 1024

export class BodyBudget {
  readonly limits: BodyLimits
  /** Reserved bytes by tenant. */
  readonly #reserved = new Map<string, number>()
  #totalBytes = 0
  /** Reserved bytes that count towards `maxBytes`. */
  #countedBytes = 0
  /** Tenants whose first bytes do not count. */
  readonly #withFloor = new Set<string>()

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  get #maxFloors(): number {
    return Math.floor((this.limits.maxBytes * floorShare) / floorBytes)
  }

  /** Memory that is reserved now, in bytes. */
  get reservedBytes(): number {
    return this.#totalBytes
  }

  /**
   * Runs a handler, which may read the body. The memory stays reserved until the response is over. A whole
   * answer counts until it is sent. It is never rejected: the next requests of its tenant are.
   */
  async run(
    request: HttpRequest,
    tenant: string,
    handle: (request: HttpRequest) => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    this.#checkLimit(tenant, 0)
    const reservation = new BodyReservation(this, tenant)
    let isStream = false
    try {
      const response = await handle({
        ...request,
        json: (defaultBody) => request.json(defaultBody, reservation),
        bytes: () => request.bytes(reservation),
        jsonBytes: () => request.jsonBytes(reservation),
        reserve: (bytes) => reservation.reserve(bytes),
      })
      isStream = response.body !== null && typeof response.body !== 'string'
      // The call of a stream may still wait in a queue, with its request in memory.
      if (isStream) whenAborted(request.signal, () => reservation.release())
      if (typeof response.body === 'string') this.#countUntilSent(response.body, tenant, request)
      return response
    } finally {
      if (!isStream) reservation.release()
    }
  }

  reserve(tenant: string, bytes: number): void {
    this.#checkLimit(tenant, bytes)
    const own = (this.#reserved.get(tenant) ?? 0) + bytes
    const hasFloor = this.#hasFloor(tenant)
    const counted = hasFloor ? Math.max(0, own - floorBytes) : own
    const free = this.limits.maxBytes - this.#countedBytes + this.#countedOf(tenant) - counted
    // A tenant never reserves more than is free for the others, so a few tenants cannot use up all memory.
    // Answers can exceed the memory. Then the others still have their floors.
    if (counted > Math.max(0, free))
      throw new LlmError(
        'overloaded',
        'Running requests and unread answers take too much memory. Try again later.',
        { retryAfterMs },
      )
    this.#set(tenant, own, hasFloor)
  }

  release(tenant: string, bytes: number): void {
    this.#set(tenant, (this.#reserved.get(tenant) ?? 0) - bytes, this.#withFloor.has(tenant))
  }

  #checkLimit(tenant: string, bytes: number): void {
    const { maxBytesPerTenant } = this.limits
    if ((this.#reserved.get(tenant) ?? 0) + bytes > maxBytesPerTenant)
      throw new LlmError(
        'rate_limit',
        `Your running requests and unread answers would take more than ${maxBytesPerTenant} bytes. Try again when one of them has ended.`,
        { retryAfterMs },
      )
  }

  #countUntilSent(answer: string, tenant: string, { onSent }: HttpRequest): void {
    if (!onSent || answer.length <= freeAnswerLength) return
    const bytes = Buffer.byteLength(answer)
    this.#set(tenant, (this.#reserved.get(tenant) ?? 0) + bytes, this.#hasFloor(tenant))
    onSent(() => this.release(tenant, bytes))
  }

  /** Whether the first bytes of the tenant do not count. Without reserved bytes: whether they would not. */
  #hasFloor(tenant: string): boolean {
    if (this.#reserved.has(tenant)) return this.#withFloor.has(tenant)
    return this.#withFloor.size < this.#maxFloors
  }

  #set(tenant: string, bytes: number, hasFloor: boolean): void {
    this.#totalBytes += bytes - (this.#reserved.get(tenant) ?? 0)
    this.#countedBytes -= this.#countedOf(tenant)
    if (bytes > 0) this.#reserved.set(tenant, bytes)
    else this.#reserved.delete(tenant)
    if (hasFloor && bytes > 0) this.#withFloor.add(tenant)
    else this.#withFloor.delete(tenant)
    this.#countedBytes += this.#countedOf(tenant)
  }

  #countedOf(tenant: string): number {
    const bytes = this.#reserved.get(tenant) ?? 0
    return this.#withFloor.has(tenant) ? Math.max(0, bytes - floorBytes) : bytes
  }
}

/** The memory of one request's body. */
class BodyReservation implements BodyAllowance {
  readonly #budget: BodyBudget
  readonly #tenant: string
  #bytes = 0

  constructor(budget: BodyBudget, tenant: string) {
    this.#budget = budget
    this.#tenant = tenant
  }

  get maxBytes(): number {
    return this.#budget.limits.maxBytesPerTenant
  }

  get stallTimeoutMs(): number {
    return this.#budget.limits.stallTimeoutMs
  }

  reserve(bytes: number): void {
    if (bytes === 0) return
    this.#budget.reserve(this.#tenant, bytes)
    this.#bytes += bytes
  }

  release(): void {
    if (this.#bytes > 0) this.#budget.release(this.#tenant, this.#bytes)
    this.#bytes = 0
  }
}

const retryAfterMs = 1_000
