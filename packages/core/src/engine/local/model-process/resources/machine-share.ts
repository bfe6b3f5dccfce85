/**
 * Shares memory and cores between the model processes of the machine. Each process writes a record of its
 * state and reads the records of the others.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../../../errors.ts'
import { type CardSelection, canShareCards } from '../../ipc/card-selection.ts'
import { send, tryConnect } from '../../ipc/framing.ts'
import type { ToProcess } from '../../ipc/messages.ts'
import type { ProcessConfig, ProcessRecord } from '../../ipc/process-config.ts'
import {
  diskFullReason,
  getPidNamespace,
  isAlive,
  isDiskFull,
  isRunning,
  type NamedRecord,
  readRecord,
  readRecords,
  removeRecord,
  socketAddressOf,
  writeRecord,
} from '../../ipc/runtime-dir.ts'
import { withLock } from './claim.ts'
import { type MachineMemory, type MemorySpace, readMachineMemory, type VramReader } from './machine-memory.ts'
import type { MemoryEstimate, MemoryNeed, MemoryRequest } from './memory-estimate.ts'

/** Delay of record updates, so that short calls do not write files all the time. */
const writeDelayMs = 50
/** Interval at which a process reads the records of the others. */
const pollIntervalMs = 250
/** Time that an idle process may take to end after it was asked to. */
const yieldTimeoutMs = 5_000
/** Time that a driver may take to free the memory of a graphics card after the process has ended. */
const vramReleaseTimeoutMs = 2_000
/** Time that a process without a record may take to end. Longer than a model process waits for its last step. */
const exitTimeoutMs = 6_000
/** Time to wait for the lock. Its owner may ask several stopped processes to end. */
const lockTimeoutMs = 60_000
/** Total time that a process waits for memory of busy processes, and for loads of others. */
const memoryWaitTimeoutMs = 5 * 60_000

type WaitReason = 'memory' | 'vramLoads'

export class MachineShare {
  readonly #location: Pick<ProcessConfig, 'runtimeDir' | 'name'>
  readonly #cards: CardSelection
  readonly #waitTimeoutMs: number
  #record: ProcessRecord
  #calls = 0
  /** Processes that held memory that was short at the last reservation, and could not end. */
  #workingProcesses: readonly NamedRecord[] = []
  readonly #waitDeadlines = new Map<WaitReason, number>()
  #writeTimer: NodeJS.Timeout | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(
    { cards, folder, ...location }: Pick<ProcessConfig, 'runtimeDir' | 'name' | 'folder' | 'cards'>,
    waitTimeoutMs = memoryWaitTimeoutMs,
  ) {
    this.#location = location
    this.#cards = cards
    this.#waitTimeoutMs = waitTimeoutMs
    const [processId, namespace] = [process.pid, getPidNamespace()]
    this.#record = { processId, namespace, folder, cards, state: 'loading', since: Date.now(), ...noMemory }
  }

  get record(): ProcessRecord {
    return this.#record
  }

  get isBusy(): boolean {
    return this.#record.state !== 'idle'
  }

  onLoaded({ ram, vram, mapped }: MemoryEstimate): void {
    const state = this.#calls > 0 ? 'busy' : 'idle'
    // The driver of the card counts what the load has allocated.
    const vramSizes = { reservedVramBytes: 0, vramBytes: vram }
    this.#update({ state, sizeBytes: ram, reservedBytes: mapped, ...vramSizes })
  }

  /** Drops the reservation. The process stays until its apps know about the failure. */
  onLoadFailed(): void {
    this.#update({ state: this.#calls > 0 ? 'busy' : 'idle', ...noMemory })
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
    const check = async (): Promise<void> => {
      const others = await this.#findOthers(isWorking)
      if (!this.#hasEnded) onCount(1 + others.length)
    }
    let isChecking = false
    this.#pollTimer = setInterval(() => {
      if (!this.isBusy || isChecking) return
      isChecking = true
      const end = (): void => {
        isChecking = false
      }
      check().then(end, end)
    }, pollIntervalMs).unref()
  }

  /**
   * Reserves memory for this process until its load ends. If too little is free, asks idle processes to end,
   * the longest idle first. Asks none if other processes are busy and ending all idle processes would free too
   * little. Reserves nothing if too little remains free. Rejects if the lock is lost, and with an `LlmError`
   * `upstream` if the disk is full.
   */
  async reserve(need: MemoryRequest, readVram: VramReader): Promise<MachineMemory> {
    const { runtimeDir, name } = this.#location
    const reserve = async (expectOwned: () => Promise<void>): Promise<MachineMemory> => {
      const working = await this.#evictIdle(need, readVram)
      const others = await this.#findOthers()
      const memory = await measureMemory(others, readVram)
      // From here on, nothing may wait, since another process could take the lock meanwhile.
      await expectOwned()
      const short = findShortage(need, memory)
      this.#workingProcesses = [...working, ...others.filter(isWorking)].filter(
        ([, record]) => short.ram || !short.vram || usesVram(record),
      )
      const record = { ...this.#record, ...reservationOf(short.ram || short.vram ? undefined : need) }
      writeRecord(runtimeDir, name, record)
      this.#record = record
      return memory
    }
    return withLock(runtimeDir, 'memory', reserve, lockTimeoutMs).catch((cause) => {
      throw isDiskFull(cause) ? reservationFailed(cause) : cause
    })
  }

  /**
   * Drops the reservation and waits until a busy process that holds short memory becomes idle or ends. Returns
   * `false` after a timeout, or if there is no such process.
   * @param onWait called before a wait
   */
  waitForMemory(onWait: () => void): Promise<boolean> {
    return this.#waitFor('memory', this.#workingProcesses, onWait)
  }

  /** Like `waitForMemory`, but waits only for the end of loads that use a graphics card. */
  waitForVramLoads(onWait: () => void): Promise<boolean> {
    return this.#waitFor('vramLoads', this.#workingProcesses.filter(isVramLoad), onWait)
  }

  /** Removes the record, so that apps no longer connect. */
  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#writeTimer)
    clearInterval(this.#pollTimer)
    if (this.#ownsRecord()) removeRecord(this.#location.runtimeDir, this.#location.name)
  }

  async #waitFor(
    reason: WaitReason,
    processes: readonly NamedRecord[],
    onWait: () => void,
  ): Promise<boolean> {
    if (processes.length === 0) return false
    const startedAt = performance.now()
    const deadline = this.#waitDeadlines.get(reason) ?? startedAt + this.#waitTimeoutMs
    this.#waitDeadlines.set(reason, deadline)
    onWait()
    this.#record = { ...this.#record, ...reservationOf(undefined), state: 'waiting', since: Date.now() }
    this.#writeRecord()
    while (performance.now() < deadline) {
      const mayExit = performance.now() - startedAt < exitTimeoutMs
      const rests = await Promise.all(processes.map((one) => this.#isAtRest(one, mayExit)))
      if (rests.includes(true)) return true
      await delay(pollIntervalMs)
    }
    return false
  }

  /**
   * Whether a process is no longer busy. A process that shuts down removes its record first, but keeps its
   * memory until it ends.
   * @param mayExit whether a process without a record may still be about to end. Later, its process id belongs to
   *   a zombie or to another program
   */
  async #isAtRest([name, earlier]: NamedRecord, mayExit: boolean): Promise<boolean> {
    const { runtimeDir } = this.#location
    const current = readRecord(runtimeDir, name)
    if (current?.processId === earlier.processId && current.namespace === earlier.namespace)
      return !isWorking([name, current]) || !(await isRunning(runtimeDir, name, current))
    return !mayExit || earlier.namespace !== getPidNamespace() || !isAlive(earlier)
  }

  /** Returns the other processes that run. Those on other graphics cards count as if they used none. */
  async #findOthers(isWanted: (one: NamedRecord) => boolean = () => true): Promise<readonly NamedRecord[]> {
    const { runtimeDir, name } = this.#location
    const others = [...readRecords(runtimeDir)].filter((one) => one[0] !== name && isWanted(one))
    const checks = await Promise.all(others.map(([other, record]) => isRunning(runtimeDir, other, record)))
    return others
      .filter((_, index) => checks[index])
      .map(([other, record]) => [
        other,
        canShareCards(record.cards, this.#cards) ? record : { ...record, reservedVramBytes: 0, vramBytes: 0 },
      ])
  }

  /** Asks idle processes to end while memory is short. Returns the processes that could not end. */
  async #evictIdle(need: MemoryRequest, readVram: VramReader): Promise<readonly NamedRecord[]> {
    const others = await this.#findOthers()
    const working = others.filter(isWorking)
    const idle = others.filter(([, { state }]) => state === 'idle').sort(([, a], [, b]) => a.since - b.since)
    let memory = await measureMemory(others, readVram)
    if (cannotSuffice(need, memory, idle, working) || mayBeFree(need, memory, working)) return working
    for (const one of idle) {
      const short = findShortage(need, memory)
      if (!short.ram && !short.vram) break
      if (!short.ram && !usesVram(one[1])) continue
      const leaves = await this.#askToLeave(one[0])
      if (leaves && usesVram(one[1])) await waitForRelease(memory.vram, one[1].vramBytes, readVram)
      memory = await measureMemory(await this.#findOthers(), readVram)
    }
    return working
  }

  /** Returns whether the process leaves. It may have become busy, and a dead one has already freed its memory. */
  async #askToLeave(name: string): Promise<boolean> {
    const { runtimeDir } = this.#location
    const socket = await tryConnect(socketAddressOf(runtimeDir, name))
    if (!socket) return false
    send(socket, { type: 'yield' } satisfies ToProcess)
    const limit = performance.now() + yieldTimeoutMs
    // The socket closes when the process ends, or at once if it is busy. Unread data would keep it open.
    socket.resume()
    while (!socket.destroyed && performance.now() < limit) await delay(5)
    socket.destroy()
    return readRecord(runtimeDir, name) === undefined
  }

  #update(change: Partial<ProcessRecord>): void {
    this.#record = { ...this.#record, since: Date.now(), ...change }
    if (this.#hasEnded) return
    this.#writeTimer ??= setTimeout(() => this.#writeRecord(), writeDelayMs).unref()
  }

  #writeRecord(): void {
    clearTimeout(this.#writeTimer)
    this.#writeTimer = undefined
    if (!this.#ownsRecord()) return
    try {
      writeRecord(this.#location.runtimeDir, this.#location.name, this.#record)
    } catch {} // The disk is full: other processes see an old record.
  }

  /** Whether no other process has taken the name, as after a cleanup that has removed the socket. */
  #ownsRecord(): boolean {
    const { processId, namespace } = this.#record
    const written = readRecord(this.#location.runtimeDir, this.#location.name)
    return !written || (written.processId === processId && written.namespace === namespace)
  }
}

const noMemory = { reservedBytes: 0, sizeBytes: 0, reservedVramBytes: 0, vramBytes: 0 }

/** Whether a process uses or allocates memory and cannot end now. */
const isWorking = ([, { state }]: NamedRecord): boolean => state === 'busy' || state === 'loading'

const isVramLoad = ([, record]: NamedRecord): boolean => record.state === 'loading' && usesVram(record)

const reservationOf = (need: MemoryNeed | undefined): Partial<ProcessRecord> =>
  need
    ? { state: 'loading', reservedBytes: need.ram, reservedVramBytes: need.vram }
    : { reservedBytes: 0, reservedVramBytes: 0 }

const usesVram = ({ reservedVramBytes, vramBytes }: ProcessRecord): boolean =>
  reservedVramBytes + vramBytes > 0

const sumOf = (
  processes: readonly NamedRecord[],
  field: 'reservedBytes' | 'sizeBytes' | 'reservedVramBytes' | 'vramBytes',
): number => processes.reduce((sum, [, record]) => sum + record[field], 0)

/**
 * Returns the memory without the reservations of other processes. These cover mapped weights and memory that is
 * not allocated yet. The system counts both as free.
 */
async function measureMemory(others: readonly NamedRecord[], readVram: VramReader): Promise<MachineMemory> {
  const [ram, vram] = [readMachineMemory(), await readVram()]
  const without = ({ free, total }: MemorySpace, reserved: number): MemorySpace => ({
    free: Math.max(0, free - reserved),
    total,
  })
  return {
    ram: without(ram, sumOf(others, 'reservedBytes')),
    vram: without(vram, sumOf(others, 'reservedVramBytes')),
  }
}

const findShortage = (need: MemoryNeed, { ram, vram }: MachineMemory) => ({
  ram: need.ram > ram.free,
  vram: need.vram > vram.free,
})

/** Whether memory stays too short without all idle processes, since working processes hold it. */
function cannotSuffice(
  need: MemoryRequest,
  { ram, vram }: MachineMemory,
  idle: readonly NamedRecord[],
  working: readonly NamedRecord[],
): boolean {
  const isRamShort = ram.free + sumOf(idle, 'sizeBytes') < need.ram
  const isVramShort = !need.acceptsLessVram && vram.free + sumOf(idle, 'vramBytes') < need.vram
  return (isRamShort && working.length > 0) || (isVramShort && working.some(([, record]) => usesVram(record)))
}

/**
 * Whether only memory of graphics cards is short, and enough may be free when the loads of others have ended. What
 * a load has allocated counts twice until then: the driver counts it, and the reservation contains it.
 */
function mayBeFree(need: MemoryNeed, memory: MachineMemory, working: readonly NamedRecord[]): boolean {
  const short = findShortage(need, memory)
  if (short.ram || !short.vram) return false
  return memory.vram.free + sumOf(working.filter(isVramLoad), 'reservedVramBytes') >= need.vram
}

const reservationFailed = (cause: unknown): LlmError =>
  new LlmError(
    'upstream',
    `The model process cannot reserve memory: ENOSPC: ${diskFullReason}`,
    { setup: true },
    { cause },
  )

/** Waits until the driver has freed at least half of the memory of an ended process. The size is an estimate. */
async function waitForRelease(before: MemorySpace, vramBytes: number, readVram: VramReader): Promise<void> {
  const limit = performance.now() + vramReleaseTimeoutMs
  while ((await readVram()).free < before.free + vramBytes / 2 && performance.now() < limit) await delay(20)
}
