/** Runs the items of batches in this process, in the background of all other calls. */
import type { Caller } from '../../accounts/auth/caller.ts'
import type { DeferredCharge } from '../../accounts/usage/ledger.ts'
import type { BatchItemCall } from '../../calls/call.ts'
import type { RouteClient } from '../../calls/client.ts'
import { LlmError } from '../../errors.ts'
import type { ActiveBatch, BatchFormat, BatchItem, ClaimedItem } from '../batch.ts'
import type { BatchApis } from '../batch-apis.ts'
import type { ItemQueue, ItemResult } from '../store/item-queue.ts'
import type { WorkerLease } from '../store/worker-lease.ts'
import { BatchTurns } from './batch-turns.ts'

export interface WorkerParts {
  readonly queue: ItemQueue
  readonly apis: BatchApis
  readonly lease: WorkerLease
  /** How many items run at once. */
  readonly concurrency: number
  /** Returns the current caller: the settings of its API key may have changed. Rejects if it may no longer call. */
  readonly resolveCaller: (caller: Caller | undefined) => Promise<Caller | undefined>
  readonly clientFor: (
    caller: Caller | undefined,
    dialect: BatchFormat,
    batchItem: BatchItemCall,
  ) => RouteClient
  /** Called when work in the background fails. It is tried again. */
  readonly onError: (cause: unknown) => void
}

interface TakenItem {
  readonly batch: ActiveBatch
  readonly item: ClaimedItem
}

export class BatchWorker {
  readonly #parts: WorkerParts
  readonly #turns = new BatchTurns()
  readonly #closing = new AbortController()
  /** Items that this process has taken, and that do not run yet. */
  #taken: TakenItem[] = []
  readonly #running = new Set<Promise<void>>()
  #filling: Promise<void> | undefined
  #isFillDue = false

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  /** Takes items and runs them, as far as there is room. Never rejects. */
  fill(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve()
    this.#isFillDue = true
    this.#filling ??= this.#fill()
      .catch(this.#parts.onError)
      .finally(() => {
        this.#filling = undefined
        // Called after the last round had begun.
        if (this.#isFillDue) void this.fill()
      })
    return this.#filling
  }

  /** Ends the running items, which other processes or a later start run again. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#filling
    await this.#giveBack(this.#taken.splice(0))
    await Promise.all(this.#running)
  }

  async #fill(): Promise<void> {
    while (this.#isFillDue && !this.#closing.signal.aborted) {
      this.#isFillDue = false
      const { concurrency } = this.#parts
      if (this.#taken.length < concurrency) await this.#take(2 * concurrency - this.#taken.length)
      while (this.#running.size < concurrency) {
        const next = this.#taken.shift()
        if (!next) break
        this.#start(next)
      }
    }
  }

  /** Takes items of the batch whose turn it is. If it has none that can run now, of the next batch. */
  async #take(count: number): Promise<void> {
    const { queue, lease } = this.#parts
    for (const batch of this.#turns.inOrder(await queue.listActive())) {
      const items = await lease.hold(async () => {
        const claimed = await queue.claim(batch.id, count)
        // Each item holds the lease until it has ended.
        lease.share(claimed.length)
        return claimed
      })
      this.#taken.push(...items.map((item) => ({ batch, item })))
      if (items.length > 0) return this.#turns.onTaken(batch)
    }
  }

  #start(taken: TakenItem): void {
    const { lease, onError } = this.#parts
    const run = this.#runItem(taken)
      .catch(onError)
      .finally(() => {
        lease.release()
        this.#running.delete(run)
        void this.fill()
      })
    this.#running.add(run)
  }

  async #runItem({ batch, item: claimed }: TakenItem): Promise<void> {
    const { queue, apis } = this.#parts
    const { signal } = this.#closing
    const item = await queue.read(claimed)
    if (!item) return
    const api = await apis.of(batch.format)
    let result: ItemResult
    try {
      result = await this.#run(batch, item)
    } catch (cause) {
      const error = LlmError.from(cause)
      const retry = signal.aborted ? { delayMs: 0 } : toRetry(error, item)
      if (retry) return queue.release([claimed], retry)
      result = { outcome: 'errored', line: api.renderError(item, batch.endpoint, error) }
    }
    try {
      await this.#store(item, result)
    } catch (cause) {
      const error = LlmError.from(cause)
      if (error.code === 'unavailable') throw cause
      // A result that cannot be stored or charged would fail again.
      await this.#store(item, { outcome: 'errored', line: api.renderError(item, batch.endpoint, error) })
      this.#parts.onError(cause)
    }
  }

  async #run(batch: ActiveBatch, item: BatchItem): Promise<ItemResult> {
    const { apis, clientFor, resolveCaller } = this.#parts
    const { signal } = this.#closing
    const charges: DeferredCharge[] = []
    const batchItem = { onCharge: (charge: DeferredCharge) => void charges.push(charge) }
    try {
      const llm = clientFor(await resolveCaller(batch.caller), batch.format, batchItem)
      const api = await apis.of(batch.format)
      const line = await api.run(item, batch.endpoint, { llm, signal })
      return { outcome: 'succeeded', line, charge: charges.pop() }
    } finally {
      // An item that fails costs nothing.
      for (const charge of charges) await charge.discard()
    }
  }

  /** Stores a result, and tries again while the database is unavailable. */
  async #store(item: BatchItem, result: ItemResult): Promise<void> {
    const { queue, onError } = this.#parts
    for (let attempt = 1; ; attempt++)
      try {
        return await queue.finish(item, result)
      } catch (cause) {
        const isUnavailable = LlmError.is(cause) && cause.code === 'unavailable'
        if (isUnavailable && attempt < storeAttempts && !this.#closing.signal.aborted) continue
        await result.charge?.discard()
        // Another process, or a later start, runs the item again.
        if (isUnavailable) await queue.release([item], { delayMs: retryAfterMs }).catch(onError)
        throw cause
      }
  }

  async #giveBack(taken: readonly TakenItem[]): Promise<void> {
    const { queue, lease, onError } = this.#parts
    if (taken.length === 0) return
    await queue.release(taken.map(({ item }) => item)).catch(onError)
    lease.release(taken.length)
  }
}

/** A model process that crashes again and again on an item is not started for it again. */
const maxCrashes = 3
const storeAttempts = 10
/** Default of the time until an item is tried again, in ms. */
const retryAfterMs = 1_000

/** Returns how an item is tried again after an error. Undefined if the error is its result. */
function toRetry(
  { code, details }: LlmError,
  { crashes }: BatchItem,
): { readonly delayMs: number; readonly hasCrashed?: boolean } | undefined {
  const delayMs = details.retryAfterMs ?? retryAfterMs
  if (code === 'overloaded' || code === 'unavailable' || code === 'rate_limit') return { delayMs }
  if (code === 'upstream' || code === 'internal')
    return crashes + 1 < maxCrashes ? { delayMs, hasCrashed: true } : undefined
  return undefined
}
