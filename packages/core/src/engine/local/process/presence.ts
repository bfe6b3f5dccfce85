/** What this process tells the others of the machine of itself, and what it learns of them: memory and cores are for all. */
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { connected, send } from '../framing.ts'
import type { ProcessConfig, ProcessRecord, ToProcess } from '../protocol.ts'
import { addressOf, isAlive, ownNamespace, readRecords, removeRecord, writeRecord } from '../run-folder.ts'
import { withLock } from './claim.ts'
import { machineMemory, type Space } from './machine-memory.ts'

/** A change is told so late: short answers would else write more than they say. */
const tellAfterMs = 50
/** So often a busy process looks who else is. */
const lookEveryMs = 250
/** So long an idle process gets to leave. */
const yieldLimitMs = 5_000

export class Presence {
  readonly #place: Pick<ProcessConfig, 'runFolder' | 'name'>
  #record: ProcessRecord
  #calls = 0
  #telling: NodeJS.Timeout | undefined
  #looking: NodeJS.Timeout | undefined
  #ended = false

  constructor(place: Pick<ProcessConfig, 'runFolder' | 'name' | 'folder'>) {
    this.#place = place
    const [processId, namespace] = [process.pid, ownNamespace()]
    const { folder } = place
    this.#record = { processId, namespace, folder, state: 'loading', since: Date.now(), reservedBytes: 0 }
  }

  get record(): ProcessRecord {
    return this.#record
  }

  get isBusy(): boolean {
    return this.#record.state !== 'idle'
  }

  /** @param bytes of its weights: they are read from the file again when the machine has used their memory otherwise */
  onLoaded(bytes: number): void {
    this.#become({ state: this.#calls > 0 ? 'busy' : 'idle', reservedBytes: bytes })
  }

  onCall(): void {
    this.#calls++
    if (this.#record.state === 'idle') this.#become({ state: 'busy' })
  }

  onCallEnd(): void {
    if (--this.#calls === 0 && this.#record.state === 'busy') this.#become({ state: 'idle' })
  }

  /** While it is busy, calls back with how many model processes of the machine are, this one included. */
  watchBusy(onCount: (busy: number) => void): void {
    this.#looking = setInterval(() => {
      if (this.isBusy) onCount(1 + this.#others().filter(([, { state }]) => state !== 'idle').length)
    }, lookEveryMs).unref()
  }

  /**
   * Keeps so many bytes for this process. Where they are not free, idle processes are asked to leave, those first that
   * were idle longest, until they are or nobody is left.
   */
  async roomFor(bytes: number): Promise<Space> {
    return withLock(this.#place.runFolder, 'memory', async () => {
      const idle = this.#others()
        .filter(([, { state }]) => state === 'idle')
        .sort(([, a], [, b]) => a.since - b.since)
      for (const [name] of idle) {
        if (this.#space().free >= bytes) break
        await this.#askToLeave(name)
      }
      this.#record = { ...this.#record, reservedBytes: bytes }
      this.#tell()
      return this.#space()
    })
  }

  /** Nobody comes to this process any more. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#telling)
    clearInterval(this.#looking)
    removeRecord(this.#place.runFolder, this.#place.name)
  }

  #others(): readonly (readonly [string, ProcessRecord])[] {
    const { runFolder, name } = this.#place
    return [...readRecords(runFolder)].filter(([other, record]) => other !== name && isAlive(record))
  }

  /** Without what others keep: not all of it is taken yet, and mapped files never count as taken. */
  #space(): Space {
    const kept = this.#others().reduce((sum, [, { reservedBytes }]) => sum + reservedBytes, 0)
    const { free, total } = machineMemory()
    return { free: Math.max(0, free - kept), total }
  }

  async #askToLeave(name: string): Promise<void> {
    const socket = await connected(addressOf(this.#place.runFolder, name))
    if (!socket) return
    send(socket, { type: 'yield' } satisfies ToProcess)
    const limit = performance.now() + yieldLimitMs
    // Its connection ends with it; where it has become busy, it stays.
    while (!socket.destroyed && performance.now() < limit) await delay(5)
    socket.destroy()
  }

  #become(change: Partial<ProcessRecord>): void {
    this.#record = { ...this.#record, since: Date.now(), ...change }
    if (this.#ended) return
    this.#telling ??= setTimeout(() => this.#tell(), tellAfterMs).unref()
  }

  #tell(): void {
    clearTimeout(this.#telling)
    this.#telling = undefined
    try {
      writeRecord(this.#place.runFolder, this.#place.name, this.#record)
    } catch {} // No room on the disk: the others will be wrong about this one, and no worse.
  }
}

/** So many threads are for each when so many processes are busy: more than there are cores would slow down all. */
export const shareOfCores = (busy: number): number => Math.max(1, Math.floor(availableParallelism() / busy))
