import { readFileSync } from 'node:fs'
import { freemem, totalmem } from 'node:os'
import { join } from 'node:path'

/** Free and total memory, in bytes. */
export interface MemorySpace {
  readonly free: number
  readonly total: number
}

/** Memory of the machine and of its graphics cards. */
export interface MachineMemory {
  readonly ram: MemorySpace
  /** All 0 without a card. */
  readonly vram: MemorySpace
}

/** Reads the memory of the graphics cards. Their total is 0 without a card. */
export type VramReader = () => Promise<MemorySpace>

/**
 * Reads the memory that a process can use, within the limit of its container. The page cache counts as free,
 * since weights are mapped files.
 */
export function readMachineMemory(): MemorySpace {
  const limit = process.constrainedMemory()
  if (!limit || limit >= totalmem()) return { free: process.availableMemory(), total: totalmem() }
  const free = Math.min(limit, process.availableMemory() + readCgroupCacheBytes(), freemem())
  return { free, total: limit }
}

/**
 * Reads the size of the page cache from `memory.stat` of cgroup v2. A control group counts its page cache as
 * used, although the kernel can reclaim it.
 */
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
