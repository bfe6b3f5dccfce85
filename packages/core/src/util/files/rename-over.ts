/**
 * Renames a file over another one. On Windows, that fails while any process has the target open, such as a reader of a
 * record or a virus scanner. Both close it soon, so the rename is repeated there.
 */
import { renameSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

/** For a second in all. */
const attempts = 50
const pauseMs = 20

export interface RenameSystem<R> {
  readonly platform: NodeJS.Platform
  readonly rename: (from: string, to: string) => R
}

export async function renameOver(
  from: string,
  to: string,
  system: RenameSystem<Promise<void>> = { platform: process.platform, rename },
): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return await system.rename(from, to)
    } catch (error) {
      if (attempt === attempts || !isOpenElsewhere(error, system.platform)) throw error
      await setTimeout(pauseMs)
    }
}

/** Blocks this thread while it waits. */
export function renameOverSync(
  from: string,
  to: string,
  system: RenameSystem<void> = { platform: process.platform, rename: renameSync },
): void {
  for (let attempt = 1; ; attempt++)
    try {
      system.rename(from, to)
      return
    } catch (error) {
      if (attempt === attempts || !isOpenElsewhere(error, system.platform)) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
    }
}

/**
 * Whether an operation on a file failed because another process has the file open, or has it open and has removed it.
 * Windows reports a lack of permission with the same codes.
 */
export const isOpenElsewhere = (error: unknown, platform = process.platform): boolean =>
  platform === 'win32' && ['EPERM', 'EACCES', 'EBUSY'].includes((error as NodeJS.ErrnoException)?.code ?? '')
