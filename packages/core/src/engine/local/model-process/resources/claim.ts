/** Becoming the one process of a name: of several that start at once, one stays. */
import { once } from 'node:events'
import { readdirSync, rmSync, statSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { lock } from 'proper-lockfile'
import { connected } from '../../ipc/framing.ts'
import type { ProcessConfig, ProcessRecord } from '../../ipc/protocol.ts'
import { addressOf, isAlive, readRecords, removeRecord, writeRecord } from '../../ipc/runtime-dir.ts'

type Place = Pick<ProcessConfig, 'runFolder' | 'name'>

/** A lock whose owner has died is free after so long. */
const staleMs = 5_000
/** A folder that is younger may belong to a process that starts just now. */
const startingMs = 60_000

/** Listens, with its record beside the socket. `false` where another process of this name answers. */
export async function claim(place: Place, server: Server, record: ProcessRecord): Promise<boolean> {
  const address = addressOf(place.runFolder, place.name)
  return withLock(place.runFolder, place.name, async () => {
    if (await answers(address)) return false
    sweep(place)
    if (process.platform !== 'win32') rmSync(address, { force: true })
    writeRecord(place.runFolder, place.name, record)
    server.listen(address)
    await once(server, 'listening')
    return true
  })
}

/** One process at a time, of all that have this folder. */
export async function withLock<T>(runFolder: string, name: string, work: () => Promise<T>): Promise<T> {
  const release = await lock(runFolder, {
    lockfilePath: join(runFolder, `${name}.lock`),
    stale: staleMs,
    retries: { retries: 200, factor: 1, minTimeout: 50, maxTimeout: 50 },
  })
  try {
    return await work()
  } finally {
    await release()
  }
}

async function answers(address: string): Promise<boolean> {
  const socket = await connected(address)
  socket?.destroy()
  return socket !== undefined
}

/** What killed processes leave behind: nobody answers under this name, and the others are looked for. */
function sweep({ runFolder, name: own }: Place): void {
  const records = readRecords(runFolder)
  for (const [name, record] of records) {
    if (name !== own && isAlive(record)) continue
    rmSync(record.folder, { recursive: true, force: true })
    removeRecord(runFolder, name)
  }
  const known = new Set([...records.values()].map(({ folder }) => folder))
  for (const file of readdirSync(runFolder)) {
    const path = join(runFolder, file)
    if (!file.startsWith('process-') || known.has(path)) continue
    if (Date.now() - statSync(path).mtimeMs > startingMs) rmSync(path, { recursive: true, force: true })
  }
}
