import { parentPort } from 'node:worker_threads'
import { type JobStart, spentHere, startJob } from './cpu-meter.ts'
import { lowerPriority } from './low-priority.ts'

/** Message of a worker to its `BoundedWorker`. Each job has two: `started`, then `ended`. */
export type WorkerMessage<Result = unknown> =
  | ({ readonly type: 'started' } & JobStart)
  | { readonly type: 'ended'; readonly result: Result; readonly spentMs?: number }

/**
 * Runs the jobs of a `BoundedWorker` in this worker thread.
 * @param prepare runs before the CPU time of the job begins to count
 */
export function serveJobs<Job, Result>(
  run: (job: Job) => Result | Promise<Result>,
  prepare: (job: Job) => Promise<unknown> | undefined = () => undefined,
): void {
  const send = (message: WorkerMessage<Result>): void => parentPort?.postMessage(message)
  lowerPriority()
  parentPort?.on('message', async (job: Job) => {
    await prepare(job)
    const [start, startedAt] = [startJob(), performance.now()]
    send({ type: 'started', ...start })
    const result = await run(job)
    send({ type: 'ended', result, spentMs: spentHere(start, startedAt) })
  })
}
