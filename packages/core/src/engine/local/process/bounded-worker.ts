/** A worker for what comes from anywhere, a thread or a process: one job at a time, each with a deadline; and a cap on its memory. */
import { fork, type Serializable } from 'node:child_process'
import type { EventEmitter } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { LlmError } from '../../../errors.ts'

/** Nobody waits for it any more; most are through by then, and a new worker costs more. */
const leftDeadlineMs = 500

interface Bounds {
  readonly deadlineMs: number
  readonly memoryMb: number
  /** So long it is kept for the next job. @default as long as this process */
  readonly idleMs?: number
  /** What to say of a job that goes beyond. */
  readonly tooMuch: (what: 'time' | 'memory') => LlmError
}

interface Started {
  /** `message` with each result; `error` or `exit` where it ends. */
  readonly events: EventEmitter
  post(job: unknown): void
  end(): void
}

type Start = (file: URL, memoryMb: number) => Started

const inThread: Start = (file, memoryMb) => {
  const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } })
  worker.unref()
  return { events: worker, post: (job) => worker.postMessage(job), end: () => void worker.terminate() }
}

/** For native code. Its file has to see that it keeps to its memory, and ends with this process: as its standard input does. */
export const inProcess: Start = (file, memoryMb) => {
  const child = fork(file, [String(memoryMb)], {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
  })
  return {
    events: child,
    post: (job) => void child.send(job as Serializable),
    end: () => void child.kill('SIGKILL'),
  }
}

/** The others wait. */
export class BoundedWorker<Job, Result> {
  readonly #file: URL
  readonly #bounds: Bounds
  readonly #start: Start
  #worker: Started | undefined
  #onResult: (result: Result) => void = () => {}
  #onEnd = (): void => {}
  #idle: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(file: URL, bounds: Bounds, start = inThread) {
    this.#file = file
    this.#bounds = bounds
    this.#start = start
  }

  /** So that the first job need not wait for it. */
  start(): Started {
    if (this.#worker) return this.#worker
    const worker = this.#start(this.#file, this.#bounds.memoryMb)
    this.#worker = worker
    const onEnd = (): void => {
      if (this.#worker !== worker) return
      this.#end()
      this.#onEnd()
    }
    worker.events.on('error', onEnd)
    worker.events.on('exit', onEnd)
    worker.events.on('message', (result: Result) => {
      if (this.#worker === worker) this.#onResult(result)
    })
    return worker
  }

  /**
   * Nothing for callers who have left before their turn.
   * @param spentMs of the deadline, elsewhere
   */
  run(job: Job, signal: AbortSignal, spentMs = 0): Promise<Result | undefined> {
    const running = this.#queue.then(() => (signal.aborted ? undefined : this.#run(job, signal, spentMs)))
    this.#queue = running.catch(() => {})
    return running
  }

  async #run(job: Job, signal: AbortSignal, spentMs: number): Promise<Result> {
    const { idleMs, tooMuch } = this.#bounds
    const deadlineMs = this.#bounds.deadlineMs - spentMs
    let timer: NodeJS.Timeout | undefined
    let hurry = (): void => {}
    clearTimeout(this.#idle)
    return new Promise<Result>((resolve, reject) => {
      const onLate = (): void => {
        this.#end()
        reject(tooMuch('time'))
      }
      timer = setTimeout(onLate, deadlineMs)
      hurry = () => {
        clearTimeout(timer)
        timer = setTimeout(onLate, Math.min(deadlineMs, leftDeadlineMs))
      }
      signal.addEventListener('abort', hurry)
      this.#onResult = resolve
      this.#onEnd = () => reject(tooMuch('memory'))
      this.start().post(job)
    }).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', hurry)
      if (idleMs !== undefined) this.#idle = setTimeout(() => this.#end(), idleMs)
    })
  }

  #end(): void {
    const worker = this.#worker
    this.#worker = undefined
    worker?.end()
  }
}
