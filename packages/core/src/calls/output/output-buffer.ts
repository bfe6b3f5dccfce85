/** Holds the events of one answer that its reader has not taken yet, so that the engine need not wait. */
import type { GenerateEvent } from '../../engine/events.ts'
import type { LlmError } from '../../errors.ts'
import { Fifo } from '../../util/fifo.ts'
import { estimateBytes } from './event-size.ts'
import type { BudgetedBuffer, CallReader, OutputBudget, TenantShare } from './output-budget.ts'

/** An error of the engine. The reader gets it after the events before it. */
export class EngineFailure {
  readonly type = 'failure'
  readonly cause: unknown

  constructor(cause: unknown) {
    this.cause = cause
  }
}

export type BufferedOutput = GenerateEvent | EngineFailure

export class OutputBuffer implements BudgetedBuffer {
  readonly reader: CallReader
  readonly share: TenantShare
  readonly onStall: (error: LlmError) => void
  pausedTicks = 0
  readonly #budget: OutputBudget
  readonly #items = new Fifo<BufferedOutput>()
  #bytes = 0
  #resume: (() => void) | undefined

  /** @param onStall called with an error when the reader is too slow */
  constructor(budget: OutputBudget, reader: CallReader, onStall: (error: LlmError) => void) {
    this.reader = reader
    this.share = budget.enter(reader)
    this.onStall = onStall
    this.#budget = budget
  }

  get isEmpty(): boolean {
    return this.#items.size === 0
  }

  /**
   * Whether the generation has to pause. It never has to for a reader that has taken everything, even if
   * other readers use up the budget.
   */
  get isFull(): boolean {
    return !this.isEmpty && this.#budget.isUsedUp(this.share)
  }

  push(item: BufferedOutput): void {
    const bytes = estimateBytes(item)
    this.#items.push(item)
    this.#bytes += bytes
    this.#budget.onPush(this, bytes)
  }

  take(): BufferedOutput | undefined {
    const item = this.#items.shift()
    if (item) this.#remove(estimateBytes(item))
    return item
  }

  /** Resolves when the buffer is no longer full, or is closed. */
  whenRoom(): Promise<void> {
    this.#budget.pause(this)
    return new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  resume(): void {
    this.#resume?.()
    this.#resume = undefined
  }

  /** Drops what is buffered. The buffer cannot be used again. */
  close(): void {
    this.#budget.leave(this)
    this.#items.clear()
    this.#remove(this.#bytes)
  }

  #remove(bytes: number): void {
    this.#bytes -= bytes
    this.#budget.onRemove(this, bytes)
  }
}
