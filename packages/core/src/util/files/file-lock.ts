/**
 * A lock between processes that share a folder. The lock is a file, and its owner regularly updates the
 * modification time. The file stays empty, so that the lock also works on a full disk: deleting a model
 * needs the lock. No npm package is used, because such packages install signal handlers in the app's process.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { isOpenElsewhere } from './rename-over.ts'

/** If a lock has not been renewed for this long, its owner is dead or stopped. */
const staleMs = 5_000
const heartbeatMs = 1_000
const pollMs = 25
/**
 * How long a process waits after it has replaced a stale lock. Other processes that found the same stale lock
 * replace it within this time.
 */
const settleMs = 100
/**
 * How often a lock may be refused in a row on Windows, a second in all. A lock that was removed stays there until the
 * last process has closed it. A folder that cannot be written has the same error.
 */
const maxRefusals = 40

/** The platform, and how it opens files. */
export interface LockSystem {
  readonly platform: NodeJS.Platform
  readonly open: (path: string, flags: 'wx') => Promise<FileHandle>
}

/**
 * Waits for the lock and runs `work`. Rejects with the signal's reason if the signal aborts before the lock
 * is acquired.
 *
 * @param work `lost` aborts when another process has taken the lock, because this process was stopped for too
 *   long. `expectOwned` checks the lock at once, and rejects if it is lost. Call it before changes that
 *   could harm other processes
 */
export async function withFileLock<T>(
  path: string,
  signal: AbortSignal,
  work: (lost: AbortSignal, expectOwned: () => Promise<void>) => Promise<T>,
  system: LockSystem = { platform: process.platform, open },
): Promise<T> {
  const file = await acquire(path, signal, system)
  const lost = new AbortController()
  const heartbeat = setInterval(() => renew(path, file).catch((reason) => lost.abort(reason)), heartbeatMs)
  heartbeat.unref()
  try {
    signal.throwIfAborted()
    return await work(lost.signal, () => expectOwned(path, file))
  } finally {
    clearInterval(heartbeat)
    if (await isOwned(path, file)) await rm(path, { force: true })
    await file.close()
  }
}

async function acquire(path: string, signal: AbortSignal, system: LockSystem): Promise<FileHandle> {
  for (let refusals = 0; ; ) {
    signal.throwIfAborted()
    try {
      const file = await tryAcquire(path, system)
      if (file) return file
      refusals = 0
    } catch (error) {
      if (!isOpenElsewhere(error, system.platform) || ++refusals === maxRefusals) throw error
    }
    await setTimeout(pollMs)
  }
}

async function tryAcquire(path: string, system: LockSystem): Promise<FileHandle | undefined> {
  try {
    return await createLockFile(path, system)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return takeOverStaleLock(path, system)
    throw error
  }
}

/**
 * Creates the lock file. Sets its modification time by the clock of this machine, because a network disk may
 * have another clock.
 */
async function createLockFile(path: string, { open }: LockSystem): Promise<FileHandle> {
  const file = await open(path, 'wx')
  await touch(file)
  return file
}

/** Whether the lock has a live owner. */
export const isFresh = ({ mtimeMs }: { readonly mtimeMs: number }): boolean => Date.now() - mtimeMs < staleMs

/**
 * When several processes find a stale lock, each replaces it. The last of these processes owns the new lock.
 */
async function takeOverStaleLock(path: string, system: LockSystem): Promise<FileHandle | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (!found || isFresh(found)) return undefined
  const own = `${path}-${randomUUID()}`
  const file = await createLockFile(own, system)
  try {
    await rename(own, path)
    await setTimeout(settleMs)
    if (await isOwned(path, file)) return file
  } catch (error) {
    await rm(own, { force: true })
    await file.close()
    throw error
  }
  await file.close()
  return undefined
}

async function renew(path: string, file: FileHandle): Promise<void> {
  await expectOwned(path, file)
  await touch(file)
}

async function touch(file: FileHandle): Promise<void> {
  const now = new Date()
  await file.utimes(now, now)
}

async function expectOwned(path: string, file: FileHandle): Promise<void> {
  if (!(await isOwned(path, file))) throw new Error('The lock was lost.')
}

/**
 * Whether the file at the path is still this open file, by inode number. The number of an open file is not
 * reused.
 */
async function isOwned(path: string, file: FileHandle): Promise<boolean> {
  const [current, own] = await Promise.all([
    stat(path, { bigint: true }).catch(() => undefined),
    file.stat({ bigint: true }),
  ])
  return current?.ino === own.ino && current.dev === own.dev
}
