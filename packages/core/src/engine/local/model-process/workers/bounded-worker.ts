/**
 * Runs untrusted jobs one at a time in a worker thread or a child process. CPU time and memory are limited. The
 * start of the worker does not count towards the CPU time of the job.
 */
import { fork, type Serializable } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import { LlmError } from '../../../../errors.ts'
import type { CpuMeter } from './cpu-meter.ts'
import type { WorkerMessage } from './serve-jobs.ts'

/**
 * Time that a running job still has after its caller has left. Most jobs end in this time, and waiting for
 * them is cheaper than starting a new worker.
 */
const abortedDeadlineMs = 500
/** Longest elapsed time until a worker begins to work on a job. It may have to read a vocabulary. */
const startTimeoutMs = 60_000
/**
 * Longest elapsed time of a job for each ms of its CPU time. Low priority leaves a job a tenth of a core beside one
 * busy thread, and a twentieth beside two.
 */
const maxSlowdown = 20
/** Shortest time between two readings of the CPU time, in ms. */
const minCheckMs = 10

interface WorkerBounds {
  readonly memoryMb: number
  /** How long an idle worker is kept, in ms. @default until this process ends */
  readonly idleMs?: number
  /** Error for a job that exceeds a limit. */
  readonly limitError: (what: 'time' | 'memory') => LlmError
  /** Error for a job that crashes native code. @default `internal` */
  readonly crashError?: () => LlmError
}

interface WorkerHandle {
  post(job: unknown): void
  terminate(): void
}

/** Why a worker ended early. `failure`: neither the memory limit nor a crash of native code. */
type WorkerEndReason = 'memory' | 'crash' | 'failure'

type StartWorker = (
  file: URL,
  memoryMb: number,
  onMessage: (message: WorkerMessage) => void,
  onEnd: (reason: WorkerEndReason, cause: unknown) => void,
) => WorkerHandle

const startThread: StartWorker = (file, memoryMb, onMessage, onEnd) => {
  const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } })
  worker.unref()
  worker.on('message', onMessage)
  worker.on('error', (cause: NodeJS.ErrnoException) =>
    onEnd(cause?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'failure', cause),
  )
  worker.on('exit', (code) => onEnd('failure', new Error(`The worker ended with exit code ${code}.`)))
  return { post: (job) => worker.postMessage(job), terminate: () => void worker.terminate() }
}

/**
 * Starts a child process, for jobs that run native code. The script in `file` must enforce the memory limit.
 * It must also exit when its standard input closes.
 */
export const startProcess: StartWorker = (file, memoryMb, onMessage, onEnd) => {
  const child = fork(file, [String(memoryMb)], {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
  })
  child.on('message', (message) => onMessage(message as WorkerMessage))
  child.on('error', (cause) => onEnd('failure', cause))
  child.on('exit', (code, signal) =>
    onEnd(
      endReasonOf(code ?? 0, signal),
      new Error(`The worker ended with ${signal ?? `exit code ${code}`}.`),
    ),
  )
  return { post: (job) => void child.send(job as Serializable), terminate: () => void child.kill('SIGKILL') }
}

function endReasonOf(code: number, signal: NodeJS.Signals | null): WorkerEndReason {
  // The memory guard of the worker sends SIGKILL, and so does a system that is out of memory.
  if (signal === 'SIGKILL') return 'memory'
  // Windows has no signals and reports crashes with high exit codes. An uncaught exception exits with 1.
  return signal !== null || code > 128 ? 'crash' : 'failure'
}

/** Starts the worker for the first job. Further jobs wait until the job before them has ended. */
export class BoundedWorker<Job, Result> {
  readonly #file: URL
  readonly #bounds: WorkerBounds
  readonly #start: StartWorker
  #worker: WorkerHandle | undefined
  #onMessage: (message: WorkerMessage<Result>) => void = () => {}
  #onFailure: (error: LlmError) => void = () => {}
  #idleTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(file: URL, bounds: WorkerBounds, start = startThread) {
    this.#file = file
    this.#bounds = bounds
    this.#start = start
  }

  /** Ends the running job, which rejects. Starts the next worker, unless none was running. */
  restart(): void {
    if (!this.#worker) return
    this.#onFailure(new LlmError('internal', 'The job was stopped.'))
    this.#terminate()
    this.start()
  }

  /** Starts the worker unless it is running. If called early, the first job need not wait for the start. */
  start(): WorkerHandle {
    if (this.#worker) return this.#worker
    const onMessage = (message: WorkerMessage): void => {
      if (this.#worker === worker) this.#onMessage(message as WorkerMessage<Result>)
    }
    const onEnd = (reason: WorkerEndReason, cause: unknown): void => {
      if (this.#worker !== worker) return
      this.#terminate()
      this.#onFailure(this.#errorOf(reason, cause))
    }
    const worker = this.#start(this.#file, this.#bounds.memoryMb, onMessage, onEnd)
    this.#worker = worker
    return worker
  }

  /**
   * Resolves with `undefined` when the signal aborts before the job starts. Throws an `LlmError`: the
   * `limitError` of the bounds if the job has used up its CPU time, or most of it in the longest elapsed time.
   * `overloaded` if the machine is too busy.
   */
  run(job: Job, signal: AbortSignal, meter: CpuMeter): Promise<Result | undefined> {
    const running = this.#queue.then(() => (signal.aborted ? undefined : this.#run(job, signal, meter)))
    this.#queue = running.catch(() => {})
    return running
  }

  async #run(job: Job, signal: AbortSignal, meter: CpuMeter): Promise<Result> {
    const { idleMs, limitError } = this.#bounds
    let checkTimer: NodeJS.Timeout | undefined
    let deadline: NodeJS.Timeout | undefined
    let onAbort = (): void => {}
    clearTimeout(this.#idleTimer)
    return new Promise<Result>((resolve, reject) => {
      const fail = (error: LlmError): void => {
        meter.stop()
        reject(error)
      }
      const end = (error: LlmError): void => {
        fail(error)
        this.#terminate()
      }
      const setDeadline = (ms: number, toError: () => LlmError): void => {
        clearTimeout(deadline)
        deadline = setTimeout(() => end(toError()), ms)
      }
      const slowJobError = (): LlmError =>
        meter.spentMs > meter.remainingMs ? limitError('time') : machineTooBusy()
      const check = (): void => {
        const { remainingMs } = meter
        if (remainingMs <= 0) end(limitError('time'))
        else checkTimer = setTimeout(check, Math.max(minCheckMs, remainingMs))
      }
      onAbort = () => setDeadline(abortedDeadlineMs, () => limitError('time'))
      signal.addEventListener('abort', onAbort)
      this.#onFailure = fail
      this.#onMessage = (message) => {
        if (message.type === 'ended') {
          meter.stop(message.spentMs)
          resolve(message.result)
        } else {
          meter.start(message)
          if (!signal.aborted) setDeadline(maxSlowdown * meter.remainingMs, slowJobError)
          check()
        }
      }
      setDeadline(startTimeoutMs, machineTooBusy)
      this.start().post(job)
    }).finally(() => {
      clearTimeout(checkTimer)
      clearTimeout(deadline)
      signal.removeEventListener('abort', onAbort)
      this.#onFailure = this.#onMessage = () => {}
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

const machineTooBusy = (): LlmError =>
  new LlmError('overloaded', 'The server is too busy to prepare the request. Try again later.', {
    retryAfterMs: 10_000,
  })
