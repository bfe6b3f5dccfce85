/** What this process tells the others of the machine of itself, and what it learns of them: memory and cores are for all. */
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { connected, send } from '../../ipc/framing.ts'
import type { ProcessConfig, ProcessRecord, ToProcess } from '../../ipc/protocol.ts'
import {
  addressOf,
  isAlive,
  ownNamespace,
  readRecord,
  readRecords,
  removeRecord,
  writeRecord,
} from '../../ipc/runtime-dir.ts'
import { withLock } from './claim.ts'
import { machineMemory, type Space } from './machine-memory.ts'

/** A change is told so late: short answers would else write more than they say. */
const tellAfterMs = 50
/** So often a busy process looks who else is. */
const lookEveryMs = 250
/** So long an idle process gets to leave. */
const yieldLimitMs = 5_000
/** So long, in all, a process waits for memory that busy ones have. */
const waitLimitMs = 5 * 60_000

type Named = readonly [name: string, record: ProcessRecord]

export class Presence {
  readonly #place: Pick<ProcessConfig, 'runFolder' | 'name'>
  readonly #waitLimitMs: number
  #record: ProcessRecord
  #calls = 0
  /** Who worked when there was no room. */
  #working: readonly Named[] = []
  #waitsUntil: number | undefined
  #telling: NodeJS.Timeout | undefined
  #looking: NodeJS.Timeout | undefined
  #ended = false

  constructor(place: Pick<ProcessConfig, 'runFolder' | 'name' | 'folder'>, limitMs = waitLimitMs) {
    this.#place = place
    this.#waitLimitMs = limitMs
    const [processId, namespace] = [process.pid, ownNamespace()]
    const { folder } = place
    const nothing = { reservedBytes: 0, sizeBytes: 0 }
    this.#record = { processId, namespace, folder, state: 'loading', since: Date.now(), ...nothing }
  }

  get record(): ProcessRecord {
    return this.#record
  }

  get isBusy(): boolean {
    return this.#record.state !== 'idle'
  }

  /**
   * @param sizeBytes of its memory
   * @param reservedBytes of its weights: they are read from the file again when the machine has used their memory otherwise
   */
  onLoaded(sizeBytes: number, reservedBytes: number): void {
    this.#become({ state: this.#calls > 0 ? 'busy' : 'idle', sizeBytes, reservedBytes })
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
      if (this.isBusy) onCount(1 + this.#others().filter(works).length)
    }, lookEveryMs).unref()
  }

  /**
   * Keeps so many bytes for this process. Where they are not free, idle processes are asked to leave, those first that
   * were idle longest, until they are or nobody is left; none of them in vain, while others work.
   */
  async roomFor(bytes: number): Promise<Space> {
    return withLock(this.#place.runFolder, 'memory', async () => {
      const others = this.#others()
      const idle = others
        .filter(([, { state }]) => state === 'idle')
        .sort(([, a], [, b]) => a.since - b.since)
      const working = others.filter(works)
      const inVain = working.length > 0 && this.#free() + sizeOf(idle) < bytes
      for (const [name] of inVain ? [] : idle) {
        if (this.#free() >= bytes) break
        await this.#askToLeave(name)
      }
      this.#working = [...working, ...this.#others().filter(works)]
      const free = this.#free()
      const state = free >= bytes ? 'loading' : this.#record.state
      this.#record = { ...this.#record, state, reservedBytes: bytes }
      this.#tell()
      return { free: Math.max(0, free), total: machineMemory().total }
    })
  }

  /** Waits, and keeps nothing meanwhile, until one that works rests or has ended. `false` where none does in time. */
  async waitForRoom(): Promise<boolean> {
    this.#waitsUntil ??= performance.now() + this.#waitLimitMs
    this.#record = { ...this.#record, state: 'waiting', since: Date.now(), reservedBytes: 0 }
    this.#tell()
    while (this.#working.length > 0 && performance.now() < this.#waitsUntil) {
      if (this.#working.some((one) => this.#rests(one))) return true
      await delay(lookEveryMs)
    }
    return false
  }

  /** Nobody comes to this process any more. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#telling)
    clearInterval(this.#looking)
    removeRecord(this.#place.runFolder, this.#place.name)
  }

  /** One that leaves has no record any more, and its memory until it has ended. */
  #rests([name, then]: Named): boolean {
    const now = readRecord(this.#place.runFolder, name)
    if (now?.processId === then.processId) return !works([name, now]) || !isAlive(now)
    return then.namespace !== ownNamespace() || !isAlive(then)
  }

  #others(): readonly Named[] {
    const { runFolder, name } = this.#place
    return [...readRecords(runFolder)].filter(([other, record]) => other !== name && isAlive(record))
  }

  /** Without what others keep: not all of it is taken yet, and mapped files never count as taken. */
  #free(): number {
    const kept = this.#others().reduce((sum, [, { reservedBytes }]) => sum + reservedBytes, 0)
    return machineMemory().free - kept
  }

  async #askToLeave(name: string): Promise<void> {
    const socket = await connected(addressOf(this.#place.runFolder, name))
    if (!socket) return
    send(socket, { type: 'yield' } satisfies ToProcess)
    const limit = performance.now() + yieldLimitMs
    // Its connection ends with it, once its last words are read; where it has become busy, it stays.
    socket.resume()
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

/** Whether a process has memory, or takes it, and cannot leave now. */
const works = ([, { state }]: Named): boolean => state === 'busy' || state === 'loading'

const sizeOf = (processes: readonly Named[]): number =>
  processes.reduce((sum, [, { sizeBytes }]) => sum + sizeBytes, 0)

/** So many threads are for each when so many processes are busy: more than there are cores would slow down all. */
export const shareOfCores = (busy: number): number => Math.max(1, Math.floor(availableParallelism() / busy))
