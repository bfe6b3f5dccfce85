/** Runs the items of batches in this process, in the background of all other calls. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '../../accounts/auth/caller.ts'
import type { DeferredCharge } from '../../accounts/usage/ledger.ts'
import type { BatchItemCall } from '../../calls/call.ts'
import type { RouteClient } from '../../calls/client.ts'
import { LlmError } from '../../errors.ts'
import type { ActiveBatch, BatchFormat, BatchItem, ClaimedItem } from '../batch.ts'
import type { BatchApis } from '../batch-apis.ts'
import type { ItemQueue, ItemResult } from '../store/item-queue.ts'
import type { WorkerLease } from '../store/worker-lease.ts'
import { BatchScheduler } from './batch-scheduler.ts'

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
  readonly #scheduler = new BatchScheduler()
  readonly #closing = new AbortController()
  /** Items that this process has taken, and that do not run yet. */
  #taken: TakenItem[] = []
  readonly #running = new Map<TakenItem, Promise<void>>()
  /** Whether the rows of items that this process holds may differ from what it knows. */
  #hasFailed = false
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
      .catch((cause: unknown) => {
        this.#hasFailed = true
        this.#parts.onError(cause)
      })
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
    await Promise.all(this.#running.values())
  }

  async #fill(): Promise<void> {
    while (this.#isFillDue && !this.#closing.signal.aborted) {
      this.#isFillDue = false
      const { queue, concurrency } = this.#parts
      if (this.#hasFailed) {
        // The database may have taken items for this process, or may not have released them.
        await queue.giveBackUnknown([...this.#taken, ...this.#running.keys()].map(({ item }) => item))
        this.#hasFailed = false
      }
      if (this.#taken.length < concurrency) await this.#take(2 * concurrency - this.#taken.length)
      this.#startTaken()
    }
  }

  /** Takes items of the batch that is scheduled next. If it has too few that can run now, also of the next batches. */
  async #take(count: number): Promise<void> {
    const { queue, lease } = this.#parts
    let left = count
    for (const batch of this.#scheduler.inOrder(await queue.listActive())) {
      const items = await lease.hold(async () => {
        const claimed = await queue.claim(batch.id, left)
        // Each item holds the lease until it has ended.
        lease.share(claimed.length)
        return claimed
      })
      this.#taken.push(...items.map((item) => ({ batch, item })))
      if (items.length > 0 && left === count) this.#scheduler.onTaken(batch)
      left -= items.length
      if (left <= 0) return
    }
  }

  /** An item that a crash of the model process has ended before runs alone, so that no other item ends with it. */
  #startTaken(): void {
    const { concurrency } = this.#parts
    const isSuspect = ({ item }: TakenItem): boolean => item.crashes > 0
    while (this.#running.size < concurrency && ![...this.#running.keys()].some(isSuspect)) {
      const next = this.#taken[0]
      if (!next || (isSuspect(next) && this.#running.size > 0)) return
      this.#taken.shift()
      this.#start(next)
    }
  }

  #start(taken: TakenItem): void {
    const { lease, onError } = this.#parts
    const run = this.#runItem(taken)
      .catch((cause: unknown) => {
        this.#hasFailed = true
        onError(cause)
      })
      .finally(() => {
        lease.release()
        this.#running.delete(taken)
        void this.fill()
      })
    this.#running.set(taken, run)
  }

  async #runItem({ batch, item: claimed }: TakenItem): Promise<void> {
    const { queue, apis, onError } = this.#parts
    const { signal } = this.#closing
    const item = await queue.read(claimed)
    if (!item) return
    const api = await apis.of(batch.format)
    const toErrored = (error: LlmError): ItemResult => ({
      outcome: 'errored',
      line: api.renderError(item, batch.endpoint, error),
    })
    let result: ItemResult
    try {
      result = await this.#run(batch, item)
    } catch (cause) {
      const error = LlmError.from(cause)
      const retry = signal.aborted ? { delayMs: 0 } : toRetry(error, item)
      if (retry) return queue.release([claimed], retry)
      result = toErrored(error)
    }
    try {
      await this.#store(item, result)
    } catch (cause) {
      const error = LlmError.from(cause)
      if (error.code === 'unavailable') throw cause
      // A result that is too large, or that cannot be charged, would fail again.
      await this.#store(item, toErrored(error))
      if (error.code === 'internal') onError(cause)
    }
  }

  async #run(batch: ActiveBatch, item: BatchItem): Promise<ItemResult> {
    const { apis, clientFor, resolveCaller } = this.#parts
    const { signal } = this.#closing
    const charges: DeferredCharge[] = []
    let isOver = false
    const batchItem = {
      onCharge: (charge: DeferredCharge) => {
        // A slow database may let a call end after its item.
        if (isOver) void charge.discard()
        else charges.push(charge)
      },
    }
    try {
      const llm = clientFor(await resolveCaller(batch.caller), batch.format, batchItem)
      const api = await apis.of(batch.format)
      const line = await api.run(item, batch.endpoint, { llm, signal })
      return { outcome: 'succeeded', line, charge: charges.pop() }
    } finally {
      isOver = true
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
        if (isUnavailable && attempt < storeAttempts && !this.#closing.signal.aborted) {
          await delay(Math.min(100 * 2 ** attempt, maxStoreDelayMs))
          continue
        }
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
/** A minute in total. Meanwhile, the result of a long answer is not lost. */
const storeAttempts = 15
const maxStoreDelayMs = 5_000
/** Default of the time until an item is tried again, in ms. */
const retryAfterMs = 1_000

/** Returns how an item is tried again after an error. Undefined if the error is its result. */
function toRetry(
  { code, details }: LlmError,
  { crashes }: BatchItem,
): { readonly delayMs: number; readonly hasCrashed?: boolean } | undefined {
  const delayMs = details.retryAfterMs ?? retryAfterMs
  if (code === 'overloaded' || code === 'unavailable' || code === 'rate_limit') return { delayMs }
  if (code !== 'upstream' && code !== 'internal') return undefined
  // The model cannot be started for a while, which no item can help.
  const isAboutModel = details.setup || details.retryAfterMs !== undefined
  if (isAboutModel && !details.processEnded) return { delayMs: details.retryAfterMs ?? setupRetryMs }
  return crashes + 1 < maxCrashes ? { delayMs, hasCrashed: true } : undefined
}

const setupRetryMs = 30_000
