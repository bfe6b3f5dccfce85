/** A worker for what comes from anywhere, a thread or a process: one job at a time, each with a deadline; and a cap on its memory. */
import { fork, type Serializable } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import { LlmError } from '../../../errors.ts'

/** Nobody waits for it any more; most are through by then, and a new worker costs more. */
const leftDeadlineMs = 500

interface Bounds {
  readonly deadlineMs: number
  readonly memoryMb: number
  /** So long it is kept for the next job. @default as long as this process */
  readonly idleMs?: number
  /** What to say of a job that goes beyond. */
  readonly tooMuch: (what: 'time' | 'memory') => LlmError
  /** What to say of a job that crashes native code. @default `internal` */
  readonly crashed?: () => LlmError
}

interface Started {
  post(job: unknown): void
  end(): void
}

/** Why a worker has ended by itself. `failure`: no job is to blame. */
type Why = 'memory' | 'crash' | 'failure'

type Start = (
  file: URL,
  memoryMb: number,
  onResult: (result: unknown) => void,
  onEnd: (why: Why, cause: unknown) => void,
) => Started

const inThread: Start = (file, memoryMb, onResult, onEnd) => {
  const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } })
  worker.unref()
  worker.on('message', onResult)
  worker.on('error', (cause: NodeJS.ErrnoException) =>
    onEnd(cause?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'failure', cause),
  )
  worker.on('exit', (code) => onEnd('failure', new Error(`The worker has ended: exit code ${code}.`)))
  return { post: (job) => worker.postMessage(job), end: () => void worker.terminate() }
}

/** For native code. Its file has to see that it keeps to its memory, and ends with this process: as its standard input does. */
export const inProcess: Start = (file, memoryMb, onResult, onEnd) => {
  const child = fork(file, [String(memoryMb)], {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
  })
  child.on('message', onResult)
  child.on('error', (cause) => onEnd('failure', cause))
  child.on('exit', (code, signal) =>
    onEnd(whyOf(code ?? 0, signal), new Error(`The worker has ended: ${signal ?? `exit code ${code}`}.`)),
  )
  return { post: (job) => void child.send(job as Serializable), end: () => void child.kill('SIGKILL') }
}

function whyOf(code: number, signal: NodeJS.Signals | null): Why {
  // Whoever watches its memory kills it, and so does a system that runs out of it.
  if (signal === 'SIGKILL') return 'memory'
  // Where there are no signals, a crash has a high number; what JavaScript throws has not.
  return signal !== null || code > 128 ? 'crash' : 'failure'
}

/** The others wait. */
export class BoundedWorker<Job, Result> {
  readonly #file: URL
  readonly #bounds: Bounds
  readonly #start: Start
  #worker: Started | undefined
  #onResult: (result: Result) => void = () => {}
  #onFailure: (error: LlmError) => void = () => {}
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
    const onResult = (result: unknown): void => {
      if (this.#worker === worker) this.#onResult(result as Result)
    }
    const onEnd = (why: Why, cause: unknown): void => {
      if (this.#worker !== worker) return
      this.#end()
      this.#onFailure(this.#errorOf(why, cause))
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
      this.#onFailure = reject
      this.start().post(job)
    }).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', hurry)
      if (idleMs !== undefined) this.#idle = setTimeout(() => this.#end(), idleMs)
    })
  }

  #errorOf(why: Why, cause: unknown): LlmError {
    const { tooMuch, crashed } = this.#bounds
    if (why === 'memory') return tooMuch('memory')
    if (why === 'crash' && crashed) return crashed()
    if (existsSync(this.#file)) return LlmError.from(cause)
    const message = `The installation is incomplete: ${basename(this.#file.pathname)} is missing.`
    return new LlmError('internal', message, {}, { cause })
  }

  #end(): void {
    const worker = this.#worker
    this.#worker = undefined
    worker?.end()
  }
}
