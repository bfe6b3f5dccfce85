import { readFileSync } from 'node:fs'
import { freemem, totalmem } from 'node:os'
import { join } from 'node:path'

/** In bytes. */
export interface MemorySpace {
  readonly free: number
  readonly total: number
}

/** Memory for a process, within the limit of its container. The page cache counts as free, since weights are mapped files. */
export function readMachineMemory(): MemorySpace {
  const limit = process.constrainedMemory()
  if (!limit || limit >= totalmem()) return { free: process.availableMemory(), total: totalmem() }
  const free = Math.min(limit, process.availableMemory() + readCgroupCacheBytes(), freemem())
  return { free, total: limit }
}

/** A control group counts its page cache as used, though the kernel reclaims it. Shape: cgroup v2, `memory.stat`. */
function readCgroupCacheBytes(): number {
  try {
    const [, group = ''] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
    const stat = readFileSync(join('/sys/fs/cgroup', group, 'memory.stat'), 'utf8')
    return [...stat.matchAll(/^(?:in)?active_file (\d+)$/gm)].reduce(
      (sum, [, bytes]) => sum + Number(bytes),
      0,
    )
  } catch {
    return 0
  }
}
