/** Becoming the one process of a name: of several that start at once, one stays. */
import { once } from 'node:events'
import { readdirSync, rmSync, statSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { lock } from 'proper-lockfile'
import { tryConnect } from '../../ipc/framing.ts'
import type { ProcessConfig, ProcessRecord } from '../../ipc/protocol.ts'
import { isAlive, readRecords, removeRecord, socketAddressOf, writeRecord } from '../../ipc/runtime-dir.ts'

type ProcessLocation = Pick<ProcessConfig, 'runtimeDir' | 'name'>

/** A lock whose owner has died is free after so long. */
const staleMs = 5_000
/** A folder that is younger may belong to a process that starts just now. */
const startingMs = 60_000

/** Listens, with its record beside the socket. `false` where another process of this name answers. */
export async function claimName(
  location: ProcessLocation,
  server: Server,
  record: ProcessRecord,
): Promise<boolean> {
  const address = socketAddressOf(location.runtimeDir, location.name)
  return withLock(location.runtimeDir, location.name, async () => {
    if (await isAnswering(address)) return false
    removeDeadProcesses(location)
    if (process.platform !== 'win32') rmSync(address, { force: true })
    writeRecord(location.runtimeDir, location.name, record)
    server.listen(address)
    await once(server, 'listening')
    return true
  })
}

/** One process at a time, of all that have this folder. */
export async function withLock<T>(runtimeDir: string, name: string, task: () => Promise<T>): Promise<T> {
  const release = await lock(runtimeDir, {
    lockfilePath: join(runtimeDir, `${name}.lock`),
    stale: staleMs,
    retries: { retries: 200, factor: 1, minTimeout: 50, maxTimeout: 50 },
  })
  try {
    return await task()
  } finally {
    await release()
  }
}

async function isAnswering(address: string): Promise<boolean> {
  const socket = await tryConnect(address)
  socket?.destroy()
  return socket !== undefined
}

/** What killed processes leave behind: nobody answers under this name, and the others are looked for. */
function removeDeadProcesses({ runtimeDir, name: own }: ProcessLocation): void {
  const records = readRecords(runtimeDir)
  for (const [name, record] of records) {
    if (name !== own && isAlive(record)) continue
    rmSync(record.folder, { recursive: true, force: true })
    removeRecord(runtimeDir, name)
  }
  const known = new Set([...records.values()].map(({ folder }) => folder))
  for (const file of readdirSync(runtimeDir)) {
    const path = join(runtimeDir, file)
    if (!file.startsWith('process-') || known.has(path)) continue
    if (Date.now() - statSync(path).mtimeMs > startingMs) rmSync(path, { recursive: true, force: true })
  }
}
