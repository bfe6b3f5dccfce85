import { setPriority } from 'node:os'

/** Nice value of the threads that work on texts of callers. Decoding gets nine times their part of a busy core. */
const niceness = 10

/**
 * Lets decoding go first on a busy machine. Linux sets the priority of the calling thread, and of the threads
 * that it starts later. Other systems would set that of the whole process, so nothing changes there.
 */
export function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(niceness)
  } catch {} // A sandbox may forbid it.
}
