import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch {
    return false
  }
}

/** Waits until something holds, looking every few milliseconds. */
export async function until(holds: () => boolean, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > limit) throw new Error(`It did not hold within ${limitMs} ms: ${holds}`)
    await delay(10)
  }
}

/** A process may stay for a moment after its last client. */
export const noOrphan = (processIds: Iterable<number>): Promise<void> =>
  until(() => ![...processIds].some(isAlive), 15_000)

/** Whether the system tells what processes have. */
export const hasProc = existsSync('/proc/self/status')

/** What it holds of the machine's memory, in bytes. */
export function residentBytes(processId: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** The processes that it has started and that have not ended. */
export const childrenOf = (processId: number): readonly number[] =>
  readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** Whether its main thread has work. */
export const isRunning = (processId: number): boolean =>
  /^State:\s+R/m.test(readFileSync(`/proc/${processId}/status`, 'utf8'))

/** Sockets, pipes and files of this process, where they can be counted. */
export const openDescriptors = (): number => (hasProc ? readdirSync('/proc/self/fd').length : 0)
