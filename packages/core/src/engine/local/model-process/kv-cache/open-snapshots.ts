/** Opens the store of KV states on the RAM disk or in the folder of the process. */
import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RamDisk } from '../../ipc/machine-report.ts'
import { getPidNamespace, isAlive } from '../../ipc/runtime-dir.ts'
import { SnapshotStore, type SnapshotStoreOptions } from './snapshots.ts'
import { measureFreeSpace, removePath } from './state-files.ts'

/** Default limit on the total size of all states, in bytes. */
const defaultMaxBytes = 2 ** 30
/** Share of the free space that states may use. */
const freeSpaceShare = 0.25
/**
 * Minimum space for states on the RAM disk, in bytes. A quarter of Docker's default RAM disk (64 MB) is
 * less.
 */
const minBytes = 64 * 2 ** 20
/** Linux's RAM disk, which is often small in containers. */
const ramDisk = '/dev/shm'

/**
 * Opens a store on the RAM disk if that has enough room, else in the folder of this process.
 * @param processFolder private folder of this process, which the app removes after a crash
 * @param maxBytes limit on the total size of all states
 */
export function openSnapshotStore(
  processFolder: string,
  maxBytes = defaultMaxBytes,
  options: SnapshotStoreOptions = {},
): SnapshotStore {
  removeOrphans()
  const { freeBytes, requiredBytes } = describeRamDisk(maxBytes)
  const ramDiskBytes = freeBytes * freeSpaceShare
  if (freeBytes >= requiredBytes) {
    try {
      return new SnapshotStore(
        mkdtempSync(join(ramDisk, `modelmount-${process.pid}-${pidNamespaceDigits()}-`)),
        Math.min(maxBytes, ramDiskBytes),
        { ...options, measureFree: measureRamDisk },
      )
    } catch {
      // The RAM disk is not writable.
    }
  }
  return new SnapshotStore(
    join(processFolder, 'snapshots'),
    Math.min(maxBytes, measureFreeSpace(processFolder) * freeSpaceShare),
    options,
  )
}

/** @param maxBytes limit on the total size of all states */
export const describeRamDisk = (maxBytes = defaultMaxBytes): RamDisk => ({
  path: ramDisk,
  freeBytes: measureRamDisk(),
  requiredBytes: Math.min(maxBytes, minBytes) / freeSpaceShare,
})

/** Free space of the RAM disk, in bytes. Its files are in memory. */
const measureRamDisk = (): number => Math.min(measureFreeSpace(ramDisk), process.availableMemory())

/** Removes folders that killed processes have left on the RAM disk. */
function removeOrphans(): void {
  for (const name of listFiles(ramDisk)) {
    const [, pid, owner = pidNamespaceDigits()] = /^modelmount-(\d+)-(?:(\d+)-)?/.exec(name) ?? []
    // Containers may share the RAM disk, but each container has its own process ids.
    if (
      pid !== undefined &&
      owner === pidNamespaceDigits() &&
      !isAlive({ processId: Number(pid), namespace: getPidNamespace() })
    )
      removePath(join(ramDisk, name))
  }
}

/** PID namespace of this process, reduced to its digits for folder names. */
const pidNamespaceDigits = (): string => getPidNamespace().replace(/\D/g, '') || '0'

function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
