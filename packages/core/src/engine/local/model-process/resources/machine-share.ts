/** What this process tells the others of the machine of itself, and what it learns of them: memory and cores are for all. */
import { setTimeout as delay } from 'node:timers/promises'
import { send, tryConnect } from '../../ipc/framing.ts'
import type { ProcessConfig, ProcessRecord, ToProcess } from '../../ipc/protocol.ts'
import {
  getPidNamespace,
  isAlive,
  readRecord,
  readRecords,
  removeRecord,
  socketAddressOf,
  writeRecord,
} from '../../ipc/runtime-dir.ts'
import { withLock } from './claim.ts'
import { type MemorySpace, readMachineMemory } from './machine-memory.ts'

/** A change is told so late: short answers would else write more than they say. */
const writeDelayMs = 50
/** So often a busy process looks who else is. */
const pollIntervalMs = 250
/** So long an idle process gets to leave. */
const yieldTimeoutMs = 5_000
/** So long, in all, a process waits for memory that busy ones have. */
const memoryWaitTimeoutMs = 5 * 60_000

type NamedRecord = readonly [name: string, record: ProcessRecord]

export class MachineShare {
  readonly #location: Pick<ProcessConfig, 'runtimeDir' | 'name'>
  readonly #waitTimeoutMs: number
  #record: ProcessRecord
  #calls = 0
  /** Who worked when there was no room. */
  #workingProcesses: readonly NamedRecord[] = []
  #waitDeadline: number | undefined
  #writeTimer: NodeJS.Timeout | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(
    location: Pick<ProcessConfig, 'runtimeDir' | 'name' | 'folder'>,
    waitTimeoutMs = memoryWaitTimeoutMs,
  ) {
    this.#location = location
    this.#waitTimeoutMs = waitTimeoutMs
    const [processId, namespace] = [process.pid, getPidNamespace()]
    const { folder } = location
    const noMemory = { reservedBytes: 0, sizeBytes: 0 }
    this.#record = { processId, namespace, folder, state: 'loading', since: Date.now(), ...noMemory }
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
    this.#update({ state: this.#calls > 0 ? 'busy' : 'idle', sizeBytes, reservedBytes })
  }

  onCall(): void {
    this.#calls++
    if (this.#record.state === 'idle') this.#update({ state: 'busy' })
  }

  onCallEnd(): void {
    if (--this.#calls === 0 && this.#record.state === 'busy') this.#update({ state: 'idle' })
  }

  /** While it is busy, calls back with how many model processes of the machine are, this one included. */
  watchBusy(onCount: (busy: number) => void): void {
    this.#pollTimer = setInterval(() => {
      if (this.isBusy) onCount(1 + this.#otherProcesses().filter(isWorking).length)
    }, pollIntervalMs).unref()
  }

  /**
   * Keeps so many bytes for this process. Where they are not free, idle processes are asked to leave, those first that
   * were idle longest, until they are or nobody is left; none of them in vain, while others work.
   */
  async reserve(bytes: number): Promise<MemorySpace> {
    return withLock(this.#location.runtimeDir, 'memory', async (expectOwned) => {
      const others = this.#otherProcesses()
      const idle = others
        .filter(([, { state }]) => state === 'idle')
        .sort(([, a], [, b]) => a.since - b.since)
      const working = others.filter(isWorking)
      const isInVain = working.length > 0 && this.#measureFreeBytes() + sumSizes(idle) < bytes
      for (const [name] of isInVain ? [] : idle) {
        if (this.#measureFreeBytes() >= bytes) break
        await this.#askToLeave(name)
      }
      this.#workingProcesses = [...working, ...this.#otherProcesses().filter(isWorking)]
      await expectOwned()
      const free = this.#measureFreeBytes()
      const state = free >= bytes ? 'loading' : this.#record.state
      this.#record = { ...this.#record, state, reservedBytes: bytes }
      this.#writeRecord()
      return { free: Math.max(0, free), total: readMachineMemory().total }
    })
  }

  /** Waits, and keeps nothing meanwhile, until one that works rests or has ended. `false` where none does in time. */
  async waitForMemory(): Promise<boolean> {
    this.#waitDeadline ??= performance.now() + this.#waitTimeoutMs
    this.#record = { ...this.#record, state: 'waiting', since: Date.now(), reservedBytes: 0 }
    this.#writeRecord()
    while (this.#workingProcesses.length > 0 && performance.now() < this.#waitDeadline) {
      if (this.#workingProcesses.some((one) => this.#isAtRest(one))) return true
      await delay(pollIntervalMs)
    }
    return false
  }

  /** Nobody comes to this process any more. */
  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#writeTimer)
    clearInterval(this.#pollTimer)
    removeRecord(this.#location.runtimeDir, this.#location.name)
  }

  /** One that leaves has no record any more, and its memory until it has ended. */
  #isAtRest([name, earlier]: NamedRecord): boolean {
    const current = readRecord(this.#location.runtimeDir, name)
    if (current?.processId === earlier.processId) return !isWorking([name, current]) || !isAlive(current)
    return earlier.namespace !== getPidNamespace() || !isAlive(earlier)
  }

  #otherProcesses(): readonly NamedRecord[] {
    const { runtimeDir, name } = this.#location
    return [...readRecords(runtimeDir)].filter(([other, record]) => other !== name && isAlive(record))
  }

  /** Without what others keep: not all of it is taken yet, and mapped files never count as taken. */
  #measureFreeBytes(): number {
    const reserved = this.#otherProcesses().reduce((sum, [, { reservedBytes }]) => sum + reservedBytes, 0)
    return readMachineMemory().free - reserved
  }

  async #askToLeave(name: string): Promise<void> {
    const socket = await tryConnect(socketAddressOf(this.#location.runtimeDir, name))
    if (!socket) return
    send(socket, { type: 'yield' } satisfies ToProcess)
    const limit = performance.now() + yieldTimeoutMs
    // Its connection ends with it, once its last words are read; where it has become busy, it stays.
    socket.resume()
    while (!socket.destroyed && performance.now() < limit) await delay(5)
    socket.destroy()
  }

  #update(change: Partial<ProcessRecord>): void {
    this.#record = { ...this.#record, since: Date.now(), ...change }
    if (this.#hasEnded) return
    this.#writeTimer ??= setTimeout(() => this.#writeRecord(), writeDelayMs).unref()
  }

  #writeRecord(): void {
    clearTimeout(this.#writeTimer)
    this.#writeTimer = undefined
    try {
      writeRecord(this.#location.runtimeDir, this.#location.name, this.#record)
    } catch {} // No room on the disk: the others will be wrong about this one, and no worse.
  }
}

/** Whether a process has memory, or takes it, and cannot leave now. */
const isWorking = ([, { state }]: NamedRecord): boolean => state === 'busy' || state === 'loading'

const sumSizes = (processes: readonly NamedRecord[]): number =>
  processes.reduce((sum, [, { sizeBytes }]) => sum + sizeBytes, 0)
