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

/** Polls a condition every 10 ms until it is true. */
export async function until(isTrue: () => boolean, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs
  while (!isTrue()) {
    if (performance.now() > limit) throw new Error(`Condition not true within ${limitMs} ms: ${isTrue}`)
    await delay(10)
  }
}

/** Waits until all these processes have ended. A model process may run for a moment after its last client. */
export const noOrphan = (processIds: Iterable<number>): Promise<void> =>
  until(() => ![...processIds].some(isAlive), 15_000)

/** Whether the system has `/proc` with the state of processes. */
export const hasProc = existsSync('/proc/self/status')

/** Resident memory of a process, in bytes. */
export function residentBytes(processId: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** Ids of the running child processes of a process. */
export const childrenOf = (processId: number): readonly number[] =>
  readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** Whether a thread of a process is running on a CPU or waits for one. */
export const isRunning = (processId: number): boolean =>
  readdirSync(`/proc/${processId}/task`).some((thread) =>
    /^State:\s+R/m.test(readFileSync(`/proc/${processId}/task/${thread}/status`, 'utf8')),
  )

/** Number of open sockets, pipes and files of this process, or 0 without `/proc`. */
export const openDescriptors = (): number => (hasProc ? readdirSync('/proc/self/fd').length : 0)
