/**
 * Bounds the memory of all output buffers of one `Llm`, for each tenant and in total. Also bounds how long a
 * reader may be behind.
 */
import { LlmError } from '../../errors.ts'

interface OutputBufferLimits {
  /** Buffered bytes of one tenant. */
  readonly tenantBytes: number
  /** Buffered bytes of all tenants. */
  readonly totalBytes: number
  /**
   * How long a reader may take nothing while events wait for it, in ms. Also how long a generation may pause
   * for its reader, in total.
   */
  readonly stallMs: number
}

/** The reader of one call. The answers of a call with several prompts have the same reader. */
export interface CallReader {
  readonly tenant: string
  /** Buffered bytes of all answers of the call. */
  unreadBytes: number
  /** `OutputBudget.tick` when the reader last took an event, or when the first unread event came. */
  activeAtTick: number
}

/** Use of the budget by one tenant. */
export interface TenantShare {
  readonly tenant: string
  bytes: number
  buffers: number
  /** Buffers whose generation pauses. */
  readonly paused: Set<BudgetedBuffer>
}

/** The part of a buffer that the budget uses. */
export interface BudgetedBuffer {
  readonly reader: CallReader
  readonly share: TenantShare
  readonly isEmpty: boolean
  readonly isFull: boolean
  /** How many ticks the generation has paused, in total. */
  pausedTicks: number
  /** Continues the generation. */
  resume(): void
  /** Called once when the reader is too slow. */
  onStall(error: LlmError): void
}

/**
 * The stall timeout in ticks. One timer ticks for all readers, since a timer per reader would cost more memory
 * than its buffer. The first tick may come at once, so a timeout ends with the tick after these.
 */
const ticksPerStall = 12

export class OutputBudget {
  readonly #limits: OutputBufferLimits
  /** Tenants with open buffers. */
  readonly #shares = new Map<string, TenantShare>()
  /** Buffers that have been filled since the last tick. */
  readonly #filled = new Set<BudgetedBuffer>()
  #bytes = 0
  #tick = 0
  #timer: NodeJS.Timeout | undefined

  constructor(limits: OutputBufferLimits) {
    this.#limits = limits
  }

  /** Buffered bytes of all tenants. */
  get bytes(): number {
    return this.#bytes
  }

  /** Time as a number of ticks. It does not advance while all buffers are empty. */
  get tick(): number {
    return this.#tick
  }

  /** Returns the share of the reader's tenant. Call `leave` when its buffer closes. */
  enter({ tenant }: CallReader): TenantShare {
    const share = this.#shares.get(tenant) ?? { tenant, bytes: 0, buffers: 0, paused: new Set() }
    this.#shares.set(tenant, share)
    share.buffers++
    return share
  }

  leave(buffer: BudgetedBuffer): void {
    this.#filled.delete(buffer)
    this.#resume(buffer)
    if (--buffer.share.buffers === 0) this.#shares.delete(buffer.share.tenant)
  }

  /**
   * Whether the tenant has used up its share. A tenant may use at most as much as is free. So a few tenants
   * cannot take all memory, and the others keep some.
   */
  isUsedUp({ bytes }: TenantShare): boolean {
    return bytes > Math.min(this.#limits.tenantBytes, this.#freeBytes)
  }

  onPush(buffer: BudgetedBuffer, bytes: number): void {
    if (buffer.reader.unreadBytes === 0) buffer.reader.activeAtTick = this.#tick
    this.#add(buffer, bytes)
    this.#filled.add(buffer)
    // Unref'd: a reader that has left the app must not keep it running.
    this.#timer ??= setInterval(() => this.#onTick(), this.#limits.stallMs / ticksPerStall).unref()
  }

  /** The reader has taken these bytes, or the buffer has dropped them. */
  onRemove(buffer: BudgetedBuffer, bytes: number): void {
    // While the total has room, the limit of each tenant stays the same, so no other tenant needs a check.
    const isTotalScarce = this.#freeBytes < this.#limits.tenantBytes
    this.#add(buffer, -bytes)
    if (!buffer.isFull) this.#resume(buffer)
    for (const share of isTotalScarce ? this.#shares.values() : [buffer.share])
      if (!this.isUsedUp(share)) for (const paused of share.paused) this.#resume(paused)
  }

  /** Pauses the generation of a full buffer. */
  pause(buffer: BudgetedBuffer): void {
    buffer.share.paused.add(buffer)
  }

  /** Ends the time limits of all readers, and continues all generations, which have ended. */
  close(): void {
    clearInterval(this.#timer)
    this.#filled.clear()
    for (const { paused } of this.#shares.values()) for (const buffer of paused) this.#resume(buffer)
  }

  get #freeBytes(): number {
    return this.#limits.totalBytes - this.#bytes
  }

  #resume(buffer: BudgetedBuffer): void {
    if (buffer.share.paused.delete(buffer)) buffer.resume()
  }

  #add({ reader, share }: BudgetedBuffer, bytes: number): void {
    reader.unreadBytes += bytes
    share.bytes += bytes
    this.#bytes += bytes
  }

  #onTick(): void {
    this.#tick++
    for (const buffer of this.#filled) {
      if (buffer.isEmpty) this.#filled.delete(buffer)
      else this.#checkProgress(buffer)
    }
    if (this.#filled.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #checkProgress(buffer: BudgetedBuffer): void {
    if (buffer.share.paused.has(buffer)) buffer.pausedTicks++
    if (this.#tick - buffer.reader.activeAtTick > ticksPerStall)
      buffer.onStall(this.#stallError('took nothing'))
    else if (buffer.pausedTicks > ticksPerStall) buffer.onStall(this.#stallError('let generation pause'))
  }

  #stallError(what: string): LlmError {
    const seconds = this.#limits.stallMs / 1_000
    return new LlmError(
      'invalid_request',
      `The answer was ended, because its reader ${what} for ${seconds} s.`,
    )
  }
}
