/**
 * Claims the name of a model process. If several processes start with the same name, only one keeps running.
 */
import { once } from 'node:events'
import { readdirSync, rmSync, statSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { withFileLock } from '../../../../util/files/file-lock.ts'
import { isListening } from '../../ipc/framing.ts'
import type { ProcessConfig, ProcessRecord } from '../../ipc/process-config.ts'
import {
  getPidNamespace,
  isRunning,
  type NamedRecord,
  readRecord,
  readRecords,
  removeRecord,
  socketAddressOf,
  writeRecord,
} from '../../ipc/runtime-dir.ts'

type ProcessLocation = Pick<ProcessConfig, 'runtimeDir' | 'name'>

const lockTimeoutMs = 10_000
/** If a file or folder without a record is younger than this, it may belong to a process that is starting. */
const startingMs = 60_000
const foreignLifetimeMs = 24 * 60 * 60_000

/**
 * Listens on the socket of this name and writes the record. Returns `false` if another process answers on
 * that socket.
 */
export async function claimName(
  location: ProcessLocation,
  server: Server,
  record: ProcessRecord,
): Promise<boolean> {
  const { runtimeDir, name } = location
  const address = socketAddressOf(runtimeDir, name)
  return withLock(runtimeDir, name, async (expectOwned) => {
    if (await isListening(address)) return false
    const dead = await findDeadProcesses(location)
    await expectOwned()
    removeDeadProcesses(location, dead)
    if (process.platform !== 'win32') rmSync(address, { force: true })
    // Until the socket is open, the record counts by its age.
    writeRecord(runtimeDir, name, { ...record, since: Date.now() })
    server.listen(address)
    await once(server, 'listening')
    return true
  })
}

/**
 * Runs a task while it holds a lock that the processes of the runtime folder share. Throws if the lock is
 * not free in time.
 * @param task receives `expectOwned`, which throws if the lock was lost. The task calls it before changes
 * that other processes rely on.
 */
export async function withLock<T>(
  runtimeDir: string,
  name: string,
  task: (expectOwned: () => Promise<void>) => Promise<T>,
  timeoutMs = lockTimeoutMs,
): Promise<T> {
  // Not `.lock`: an earlier version used a folder of that name, which cannot be taken over.
  const path = join(runtimeDir, `${name}.mutex`)
  const timeout = AbortSignal.timeout(timeoutMs)
  let isAcquired = false
  try {
    return await withFileLock(path, timeout, async (lost, expectOwned) => {
      isAcquired = true
      const keepAtExit = removeAtExit(path)
      return task(async () => {
        lost.throwIfAborted()
        await expectOwned()
      }).finally(keepAtExit)
    })
  } catch (cause) {
    if (isAcquired || !timeout.aborted) throw cause
    throw new Error(`The lock "${name}" was not free within ${timeoutMs / 1_000} s.`, { cause })
  }
}

/**
 * Removes the lock file if the process exits during its task. Otherwise, other processes would wait until the
 * lock is stale.
 */
function removeAtExit(path: string): () => void {
  const inodeOf = (): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino
  const own = inodeOf()
  const onExit = (): void => {
    if (own !== undefined && inodeOf() === own) rmSync(path, { force: true })
  }
  process.once('exit', onExit)
  return () => process.removeListener('exit', onExit)
}

/** Returns the records that ended processes have left behind, and any record of this name. */
async function findDeadProcesses({
  runtimeDir,
  name: own,
}: ProcessLocation): Promise<readonly NamedRecord[]> {
  const records = [...readRecords(runtimeDir)].filter(([, record]) => canTell(record))
  const checks = await Promise.all(
    records.map(([name, record]) => name !== own && isRunning(runtimeDir, name, record)),
  )
  return records.filter((_, index) => !checks[index])
}

/**
 * Whether a process that does not answer has ended. Sockets may not reach other PID namespaces, so there it may
 * run for a day after it has written its record.
 */
const canTell = ({ namespace, since }: ProcessRecord): boolean =>
  namespace === getPidNamespace() || Date.now() - since > foreignLifetimeMs

/** Removes what killed processes have left behind: records, folders, and unfinished locks. */
function removeDeadProcesses({ runtimeDir }: ProcessLocation, dead: readonly NamedRecord[]): void {
  for (const [name, { folder }] of dead) {
    // Meanwhile, another process may have taken the name.
    if (readRecord(runtimeDir, name)?.folder !== folder) continue
    rmSync(folder, { recursive: true, force: true })
    removeRecord(runtimeDir, name)
  }
  const known = new Set([...readRecords(runtimeDir).values()].map(({ folder }) => folder))
  for (const file of readdirSync(runtimeDir)) {
    const path = join(runtimeDir, file)
    if (!/^process-|\.mutex-[\da-f-]{36}$/.test(file) || known.has(path)) continue
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats && Date.now() - stats.mtimeMs > startingMs) rmSync(path, { recursive: true, force: true })
  }
}
