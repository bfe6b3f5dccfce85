/** A worker for what comes from anywhere, a thread or a process: one job at a time, each with a deadline; and a cap on its memory. */
import { fork, type Serializable } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import { LlmError } from '../../../errors.ts'

/** Nobody waits for it any more; most are through by then, and a new worker costs more. */
const abortedDeadlineMs = 500

interface WorkerBounds {
  readonly deadlineMs: number
  readonly memoryMb: number
  /** So long it is kept for the next job. @default as long as this process */
  readonly idleMs?: number
  /** What to say of a job that goes beyond. */
  readonly limitError: (what: 'time' | 'memory') => LlmError
  /** What to say of a job that crashes native code. @default `internal` */
  readonly crashError?: () => LlmError
}

interface WorkerHandle {
  post(job: unknown): void
  terminate(): void
}

/** Why a worker has ended by itself. `failure`: no job is to blame. */
type WorkerEndReason = 'memory' | 'crash' | 'failure'

type StartWorker = (
  file: URL,
  memoryMb: number,
  onResult: (result: unknown) => void,
  onEnd: (reason: WorkerEndReason, cause: unknown) => void,
) => WorkerHandle

const startThread: StartWorker = (file, memoryMb, onResult, onEnd) => {
  const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } })
  worker.unref()
  worker.on('message', onResult)
  worker.on('error', (cause: NodeJS.ErrnoException) =>
    onEnd(cause?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'failure', cause),
  )
  worker.on('exit', (code) => onEnd('failure', new Error(`The worker has ended: exit code ${code}.`)))
  return { post: (job) => worker.postMessage(job), terminate: () => void worker.terminate() }
}

/** For native code. Its file has to see that it keeps to its memory, and ends with this process: as its standard input does. */
export const startProcess: StartWorker = (file, memoryMb, onResult, onEnd) => {
  const child = fork(file, [String(memoryMb)], {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
  })
  child.on('message', onResult)
  child.on('error', (cause) => onEnd('failure', cause))
  child.on('exit', (code, signal) =>
    onEnd(
      endReasonOf(code ?? 0, signal),
      new Error(`The worker has ended: ${signal ?? `exit code ${code}`}.`),
    ),
  )
  return { post: (job) => void child.send(job as Serializable), terminate: () => void child.kill('SIGKILL') }
}

function endReasonOf(code: number, signal: NodeJS.Signals | null): WorkerEndReason {
  // Whoever watches its memory kills it, and so does a system that runs out of it.
  if (signal === 'SIGKILL') return 'memory'
  // Where there are no signals, a crash has a high number; what JavaScript throws has not.
  return signal !== null || code > 128 ? 'crash' : 'failure'
}

/** The others wait. */
export class BoundedWorker<Job, Result> {
  readonly #file: URL
  readonly #bounds: WorkerBounds
  readonly #start: StartWorker
  #worker: WorkerHandle | undefined
  #onResult: (result: Result) => void = () => {}
  #onFailure: (error: LlmError) => void = () => {}
  #idleTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(file: URL, bounds: WorkerBounds, start = startThread) {
    this.#file = file
    this.#bounds = bounds
    this.#start = start
  }

  /** So that the first job need not wait for it. */
  start(): WorkerHandle {
    if (this.#worker) return this.#worker
    const onResult = (result: unknown): void => {
      if (this.#worker === worker) this.#onResult(result as Result)
    }
    const onEnd = (reason: WorkerEndReason, cause: unknown): void => {
      if (this.#worker !== worker) return
      this.#terminate()
      this.#onFailure(this.#errorOf(reason, cause))
    }
    const worker = this.#start(this.#file, this.#bounds.memoryMb, onResult, onEnd)
    this.#worker = worker
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
    const { idleMs, limitError } = this.#bounds
    const deadlineMs = this.#bounds.deadlineMs - spentMs
    let timer: NodeJS.Timeout | undefined
    let shortenDeadline = (): void => {}
    clearTimeout(this.#idleTimer)
    return new Promise<Result>((resolve, reject) => {
      const onTimeout = (): void => {
        this.#terminate()
        reject(limitError('time'))
      }
      timer = setTimeout(onTimeout, deadlineMs)
      shortenDeadline = () => {
        clearTimeout(timer)
        timer = setTimeout(onTimeout, Math.min(deadlineMs, abortedDeadlineMs))
      }
      signal.addEventListener('abort', shortenDeadline)
      this.#onResult = resolve
      this.#onFailure = reject
      this.start().post(job)
    }).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', shortenDeadline)
      if (idleMs !== undefined) this.#idleTimer = setTimeout(() => this.#terminate(), idleMs)
    })
  }

  #errorOf(reason: WorkerEndReason, cause: unknown): LlmError {
    const { limitError, crashError } = this.#bounds
    if (reason === 'memory') return limitError('memory')
    if (reason === 'crash' && crashError) return crashError()
    if (existsSync(this.#file)) return LlmError.from(cause)
    const message = `The installation is incomplete: ${basename(this.#file.pathname)} is missing.`
    return new LlmError('internal', message, {}, { cause })
  }

  #terminate(): void {
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }
}
