/**
 * CPU time of jobs in worker threads and child processes. Workers run at low priority, so on a busy machine a job
 * takes many times longer than its CPU time. Only Linux reports the CPU time of single threads. On other systems,
 * where the priority is normal, elapsed time takes its place.
 */
import { readFileSync, readlinkSync } from 'node:fs'

/** Longest time after which Linux updates the CPU time of a running thread, in ms. */
const tickMs = 10

/** When a thread began to work on a job. */
export interface JobStart {
  /** Path of the thread below `/proc`. Absent if the system does not report its CPU time. */
  readonly thread?: string | undefined
  /** CPU time of the thread before the job, in ms. */
  readonly cpuMs: number
}

/** Measures a job that this thread begins now. */
export function startJob(): JobStart {
  try {
    const thread = readlinkSync('/proc/thread-self')
    updateCpuTime()
    const cpuMs = readCpuMs(thread)
    // Some kernels always report 0.
    return cpuMs ? { thread, cpuMs } : { cpuMs: 0 }
  } catch {
    return { cpuMs: 0 }
  }
}

/** Returns `undefined` if the thread has ended. */
function readCpuMs(thread: string): number | undefined {
  try {
    const [cpuNs] = readFileSync(`/proc/${thread}/schedstat`, 'utf8').split(' ')
    return Number(cpuNs) / 1e6
  } catch {
    return undefined
  }
}

/** Lets Linux update the CPU time of this thread. Else, a job of a millisecond often ends before the first update. */
const updateCpuTime = (): void => void process.cpuUsage()

/** CPU time of a job that this thread has ended, in ms. */
export function spentHere(start: JobStart, startedAt: number): number {
  updateCpuTime()
  return spentSince(start, startedAt, 0)
}

/** @param marginMs CPU time that Linux may not have counted yet */
function spentSince({ thread, cpuMs }: JobStart, startedAt: number, marginMs: number): number {
  const elapsedMs = performance.now() - startedAt
  const nowMs = thread === undefined ? undefined : readCpuMs(thread)
  return nowMs === undefined ? elapsedMs : Math.min(elapsedMs, nowMs - cpuMs + marginMs)
}

/** Sums up the CPU time of a job, which may run in several workers, one after the other. */
export class CpuMeter {
  readonly #limitMs: number
  readonly #onStart: () => void
  #endedMs = 0
  #running: { readonly start: JobStart; readonly startedAt: number } | undefined

  /** @param onStart called when a worker begins to work on the job */
  constructor(limitMs: number, onStart = () => {}) {
    this.#limitMs = limitMs
    this.#onStart = onStart
  }

  get spentMs(): number {
    if (!this.#running) return this.#endedMs
    return this.#endedMs + spentSince(this.#running.start, this.#running.startedAt, tickMs)
  }

  get remainingMs(): number {
    return this.#limitMs - this.spentMs
  }

  start(start: JobStart): void {
    this.#running = { start, startedAt: performance.now() }
    this.#onStart()
  }

  /** @param spentMs CPU time by the worker's own clock. By default, the time is measured here */
  stop(spentMs?: number): void {
    this.#endedMs = spentMs === undefined ? this.spentMs : this.#endedMs + spentMs
    this.#running = undefined
  }
}
