/**
 * Shares memory and cores between the model processes of the machine. Each process writes a record of its
 * state and reads the records of the others.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { send, tryConnect } from '../../ipc/framing.ts'
import type { ToProcess } from '../../ipc/messages.ts'
import type { ProcessConfig, ProcessRecord } from '../../ipc/process-config.ts'
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

/** Delay of record updates, so that short calls do not write files all the time. */
const writeDelayMs = 50
/** Interval at which a process reads the records of the others. */
const pollIntervalMs = 250
/** Time that an idle process may take to end after it was asked to. */
const yieldTimeoutMs = 5_000
/** Total time that a process waits for memory of busy processes. */
const memoryWaitTimeoutMs = 5 * 60_000

type NamedRecord = readonly [name: string, record: ProcessRecord]

export class MachineShare {
  readonly #location: Pick<ProcessConfig, 'runtimeDir' | 'name'>
  readonly #waitTimeoutMs: number
  #record: ProcessRecord
  #calls = 0
  /** Processes that were busy or loading at the last reservation. */
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
   * @param sizeBytes RAM that the process uses
   * @param reservedBytes size of the mapped weights, which the system counts as free
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

  /** While this process is busy, reports the number of busy model processes, itself included. */
  watchBusy(onCount: (busy: number) => void): void {
    this.#pollTimer = setInterval(() => {
      if (this.isBusy) onCount(1 + this.#otherProcesses().filter(isWorking).length)
    }, pollIntervalMs).unref()
  }

  /**
   * Reserves memory for this process. If too little is free, asks idle processes to end, the longest idle
   * first. Asks none if other processes are busy and ending all idle processes would free too little.
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

  /**
   * Drops the reservation and waits until a busy process becomes idle or ends. Returns `false` after a
   * timeout, or if no process is busy.
   */
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

  /** Removes the record, so that apps no longer connect. */
  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#writeTimer)
    clearInterval(this.#pollTimer)
    removeRecord(this.#location.runtimeDir, this.#location.name)
  }

  /**
   * Whether a process is no longer busy. A process that shuts down removes its record first, but keeps its
   * memory until it ends.
   */
  #isAtRest([name, earlier]: NamedRecord): boolean {
    const current = readRecord(this.#location.runtimeDir, name)
    if (current?.processId === earlier.processId) return !isWorking([name, current]) || !isAlive(current)
    return earlier.namespace !== getPidNamespace() || !isAlive(earlier)
  }

  #otherProcesses(): readonly NamedRecord[] {
    const { runtimeDir, name } = this.#location
    return [...readRecords(runtimeDir)].filter(([other, record]) => other !== name && isAlive(record))
  }

  /**
   * Returns the free memory without the reservations of other processes. These cover mapped weights and
   * memory that is not allocated yet. The system counts both as free.
   */
  #measureFreeBytes(): number {
    const reserved = this.#otherProcesses().reduce((sum, [, { reservedBytes }]) => sum + reservedBytes, 0)
    return readMachineMemory().free - reserved
  }

  async #askToLeave(name: string): Promise<void> {
    const socket = await tryConnect(socketAddressOf(this.#location.runtimeDir, name))
    if (!socket) return
    send(socket, { type: 'yield' } satisfies ToProcess)
    const limit = performance.now() + yieldTimeoutMs
    // The socket closes when the process ends, or at once if it is busy. Unread data would keep it open.
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
    } catch {} // The disk is full: other processes see an old record.
  }
}

/** Whether a process uses or allocates memory and cannot end now. */
const isWorking = ([, { state }]: NamedRecord): boolean => state === 'busy' || state === 'loading'

const sumSizes = (processes: readonly NamedRecord[]): number =>
  processes.reduce((sum, [, { sizeBytes }]) => sum + sizeBytes, 0)
