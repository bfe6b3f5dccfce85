/**
 * Runs untrusted jobs of all tenants in a few workers. A job counts as quick until it turns out to be slow. The
 * next jobs of its tenant count as slow from the start. Quick and slow jobs have separate limits, so a quick job
 * waits for a slow job of another tenant for a second at most. Slow jobs of a tenant also rest for longer than its
 * quick ones.
 */

import { DelayedCall } from '../../../../util/delayed-call.ts'
import { WaitQueue } from '../../../../util/wait-queue.ts'
import { availableCores } from '../../ipc/available-cores.ts'
import { type CpuBudget, listAwake, restCheckMs, selectNext } from './cpu-budget.ts'
import { CpuMeter } from './cpu-meter.ts'

/** Time after its start from which on a job counts as slow, in ms. */
const defaultQuickMs = 1_000
/** Interval at which running jobs count as progress, in ms. Each of them ends in time, even on a busy machine. */
const progressMs = 1_000
/** Maximum number of quick jobs at a time, and of slow jobs. Decoding needs the other cores. */
const defaultConcurrency = Math.min(4, Math.max(1, availableCores() >> 2))

export interface PoolWorker<Job, Result> {
  /** Rejects with an `LlmError` `invalid_request` if the meter has no CPU time left. */
  run(job: Job, signal: AbortSignal, meter: CpuMeter): Promise<Result | undefined>
  /** Ends the running job, which rejects. The worker stays usable. */
  restart(): void
}

interface PoolEntry {
  readonly budget: CpuBudget
  isSlow: boolean
}

interface PoolOptions {
  /** Maximum number of quick jobs at a time, and of slow jobs. There are up to twice as many workers. */
  readonly concurrency?: number
  readonly quickMs?: number
  /** Maximum CPU time of a job, in ms. @default what is left of the call's budget */
  readonly maxJobMs?: number
  /** Called when a job has ended or turns out to be slow, and regularly while jobs run. */
  readonly onProgress?: () => void
}

export class WorkerPool<Job, Result> {
  readonly #create: (isFirst: boolean) => PoolWorker<Job, Result>
  readonly #concurrency: number
  readonly #quickMs: number
  readonly #maxJobMs: number
  readonly #onProgress: () => void
  /** In order of creation. */
  readonly #workers: PoolWorker<Job, Result>[] = []
  readonly #busy = new Set<PoolWorker<Job, Result>>()
  readonly #running = new Set<PoolEntry>()
  readonly #nextCheck = new DelayedCall(() => this.#queue.pump())
  readonly #queue = new WaitQueue<PoolEntry>({
    select: (waiting) => this.#selectNext(waiting),
    admit: (entry) => {
      entry.isSlow = isExpectedSlow(entry)
      this.#running.add(entry)
    },
  })

  /** @param create creates a worker. Called when all others are busy */
  constructor(
    create: (isFirst: boolean) => PoolWorker<Job, Result>,
    {
      concurrency = defaultConcurrency,
      quickMs = defaultQuickMs,
      maxJobMs = Number.POSITIVE_INFINITY,
      onProgress = () => {},
    }: PoolOptions = {},
  ) {
    this.#create = create
    this.#concurrency = concurrency
    this.#quickMs = quickMs
    this.#maxJobMs = maxJobMs
    this.#onProgress = onProgress
  }

  /**
   * Charges the CPU time of the job to the budget. Resolves with `undefined` when the signal of the budget aborts
   * before the job starts. Throws an `LlmError` `invalid_request` if the call has no CPU time left.
   */
  async run(job: Job, budget: CpuBudget): Promise<Result | undefined> {
    budget.throwIfSpent()
    const entry: PoolEntry = { budget, isSlow: false }
    for (;;) {
      if (!(await this.#queue.wait(entry, budget.signal))) return undefined
      const outcome = await this.#attempt(job, entry)
      if (outcome) return outcome.result
    }
  }

  /** Resolves with `undefined` if the job was stopped, and has to run again as a slow job. */
  async #attempt(job: Job, entry: PoolEntry): Promise<{ readonly result: Result | undefined } | undefined> {
    const { budget } = entry
    const worker = this.#takeWorker()
    let isStopped = false
    let slowTimer: NodeJS.Timeout | undefined
    const onSlow = (): void => {
      isStopped = this.#countRunning(true) >= this.#concurrency || budget.mustRest(true)
      entry.isSlow = true
      // A job that got little of a core may be a quick one.
      if (meter.spentMs > this.#quickMs / 4) budget.markSlow()
      this.#onProgress()
      if (isStopped) worker.restart()
      else this.#queue.pump()
    }
    const onStart = (): void => {
      if (!entry.isSlow) slowTimer ??= setTimeout(onSlow, this.#quickMs)
    }
    const meter = new CpuMeter(Math.min(budget.remainingMs, this.#maxJobMs), onStart)
    const progressTimer = setInterval(() => this.#onProgress(), progressMs)
    try {
      return { result: await worker.run(job, budget.signal, meter) }
    } catch (error) {
      if (isStopped) return undefined
      throw error
    } finally {
      clearTimeout(slowTimer)
      clearInterval(progressTimer)
      if (isStopped) budget.chargeTenant(meter.spentMs)
      else budget.charge(meter.spentMs)
      if (meter.spentMs > this.#quickMs) budget.markSlow()
      this.#running.delete(entry)
      this.#busy.delete(worker)
      this.#onProgress()
      this.#queue.pump()
    }
  }

  #selectNext(waiting: readonly PoolEntry[]): PoolEntry | undefined {
    const canRunSlow = this.#countRunning(true) < this.#concurrency
    const canRunQuick = this.#countRunning(false) < this.#concurrency
    if (!canRunSlow && !canRunQuick) return undefined
    const ready = waiting.filter((entry) => (isExpectedSlow(entry) ? canRunSlow : canRunQuick))
    const awake = listAwake(ready, isExpectedSlow)
    if (awake.length < ready.length) this.#nextCheck.schedule(restCheckMs)
    return selectNext(awake)
  }

  #takeWorker(): PoolWorker<Job, Result> {
    let worker = this.#workers.find((one) => !this.#busy.has(one))
    if (!worker) {
      worker = this.#create(this.#workers.length === 0)
      this.#workers.push(worker)
    }
    this.#busy.add(worker)
    return worker
  }

  #countRunning(isSlow: boolean): number {
    let count = 0
    for (const entry of this.#running) if (entry.isSlow === isSlow) count++
    return count
  }
}

const isExpectedSlow = ({ budget, isSlow }: PoolEntry): boolean => isSlow || budget.isSlow
