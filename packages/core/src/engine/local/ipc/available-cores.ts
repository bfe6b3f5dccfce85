/** Cores that this process may use. In Node.js 20 and 22, `availableParallelism()` ignores the limits of a container. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/** At least 1. A part of a core does not count. */
export const availableCores = (quota = readCpuQuota()): number =>
  Math.max(1, Math.min(availableParallelism(), Math.floor(quota ?? Number.POSITIVE_INFINITY)))

/**
 * Reads how many cores control groups (version 2) allow, such as 1.5. Undefined without a limit.
 *
 * @param folder where the control groups are mounted
 */
export function readCpuQuota(folder = '/sys/fs/cgroup'): number | undefined {
  try {
    const [, group = ''] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
    const [quota, period] = readFileSync(join(folder, group, 'cpu.max'), 'utf8')
      .split(' ')
      .map(Number)
    return quota && period ? quota / period : undefined
  } catch {
    return undefined
  }
}
