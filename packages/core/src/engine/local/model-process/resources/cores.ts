import { availableCores } from '../../ipc/available-cores.ts'

/** Threads per process while `busy` processes work. With more threads than cores, all threads slow down. */
export const coresPerProcess = (busy: number): number => Math.max(1, Math.floor(availableCores() / busy))
