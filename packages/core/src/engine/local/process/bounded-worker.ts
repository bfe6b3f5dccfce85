/** A worker thread for what comes from anywhere: one job at a time, each with a deadline; and a cap on its memory. */
import { Worker } from 'node:worker_threads'
import type { LlmError } from '../../../errors.ts'

/** Nobody waits for it any more; most are through by then, and a new worker costs more. */
const leftDeadlineMs = 500

export interface Bounds {
  readonly deadlineMs: number
  readonly memoryMb: number
  /** What to say of a job that goes beyond. */
  readonly tooMuch: (what: 'time' | 'memory') => LlmError
}

/** The others wait. */
export class BoundedWorker<Job, Result> {
  readonly #file: URL
  readonly #bounds: Bounds
  #worker: Worker | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(file: URL, bounds: Bounds) {
    this.#file = file
    this.#bounds = bounds
  }

  /** So that the first job need not wait for it. */
  start(): Worker {
    this.#worker ??= new Worker(this.#file, {
      resourceLimits: { maxOldGenerationSizeMb: this.#bounds.memoryMb },
    })
    this.#worker.unref()
    return this.#worker
  }

  /** Nothing for callers who have left before their turn. */
  run(job: Job, signal: AbortSignal): Promise<Result | undefined> {
    const running = this.#queue.then(() => (signal.aborted ? undefined : this.#run(job, signal)))
    this.#queue = running.catch(() => {})
    return running
  }

  async #run(job: Job, signal: AbortSignal): Promise<Result> {
    const worker = this.start()
    const { deadlineMs, tooMuch } = this.#bounds
    let timer: NodeJS.Timeout | undefined
    let hurry = (): void => {}
    return new Promise<Result>((resolve, reject) => {
      const fail = (error: LlmError): void => {
        this.#worker = undefined
        void worker.terminate()
        reject(error)
      }
      const endIn = (ms: number): NodeJS.Timeout => setTimeout(() => fail(tooMuch('time')), ms)
      timer = endIn(deadlineMs)
      hurry = () => {
        clearTimeout(timer)
        timer = endIn(Math.min(deadlineMs, leftDeadlineMs))
      }
      signal.addEventListener('abort', hurry)
      worker.removeAllListeners()
      worker.once('error', () => fail(tooMuch('memory')))
      worker.once('message', resolve)
      worker.postMessage(job)
    }).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', hurry)
    })
  }
}
