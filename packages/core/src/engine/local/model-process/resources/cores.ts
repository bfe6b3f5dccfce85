import { availableParallelism } from 'node:os'

/** Threads per process while `busy` processes work. With more threads than cores, all threads slow down. */
export const coresPerProcess = (busy: number): number =>
  Math.max(1, Math.floor(availableParallelism() / busy))
