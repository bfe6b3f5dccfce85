/**
 * One at a time, of all processes that share a folder: a file that its owner keeps fresh. By hand, since the packages for
 * it listen to the signals of the app's process. The file stays empty: what is deleted on a full disk takes a lock, too.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

/** The owner of a lock that has not been freshened for so long has died, or been stopped. */
const staleMs = 5_000
const heartbeatMs = 1_000
const pollMs = 25
/** More than between a look at a stale lock and taking its place. */
const settleMs = 100

/**
 * Waits for who has it; rejects with the signal's reason when that aborts.
 *
 * @param work is told when the lock was lost, as it is by a process that was stopped for long; `expectMine` throws then
 *   without delay, before what others could be hurt by
 */
export async function withFileLock<T>(
  path: string,
  signal: AbortSignal,
  work: (lost: AbortSignal, expectOwned: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const file = await acquire(path, signal)
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

async function acquire(path: string, signal: AbortSignal): Promise<FileHandle> {
  for (;;) {
    signal.throwIfAborted()
    const file = await tryAcquire(path)
    if (file) return file
    await setTimeout(pollMs)
  }
}

async function tryAcquire(path: string): Promise<FileHandle | undefined> {
  try {
    return await createLockFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return takeOverStaleLock(path)
    throw error
  }
}

/** Fresh by the clock of this machine, which may not be that of the disk. */
async function createLockFile(path: string): Promise<FileHandle> {
  const file = await open(path, 'wx')
  await touch(file)
  return file
}

/** Whether somebody has the lock that this file is. */
export const isFresh = ({ mtimeMs }: { readonly mtimeMs: number }): boolean => Date.now() - mtimeMs < staleMs

/** Of several that find a dead owner's lock the last to put its own there has it. */
async function takeOverStaleLock(path: string): Promise<FileHandle | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (!found || isFresh(found)) return undefined
  const own = `${path}-${randomUUID()}`
  const file = await createLockFile(own)
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

/** As long as a file is open, no other one has its number. */
async function isOwned(path: string, file: FileHandle): Promise<boolean> {
  const [current, own] = await Promise.all([
    stat(path, { bigint: true }).catch(() => undefined),
    file.stat({ bigint: true }),
  ])
  return current?.ino === own.ino && current.dev === own.dev
}
