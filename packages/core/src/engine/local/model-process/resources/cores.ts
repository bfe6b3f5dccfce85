import { availableParallelism } from 'node:os'

/** Threads per process while this many are busy: with more threads than cores, all of them slow down. */
export const coresPerProcess = (busy: number): number =>
  Math.max(1, Math.floor(availableParallelism() / busy))
