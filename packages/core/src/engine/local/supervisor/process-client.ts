/** One model process, seen from an app: started or joined, spoken to, watched, left. */
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../../errors.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { receive, send, tryConnect } from '../ipc/framing.ts'
import {
  type CallResult,
  type CallType,
  type Footprint,
  FromProcess,
  fromWireError,
  type LoadConfig,
  nameTakenExitCode,
  type ProcessRecord,
  type ToProcess,
} from '../ipc/protocol.ts'
import { killProcess, type RuntimeDir, readRecord, socketAddressOf } from '../ipc/runtime-dir.ts'
import {
  errorCodeOf,
  type LaunchedProcess,
  launchProcess,
  processNotStarted,
  readLogTail,
  removeFolder,
} from './launch.ts'
import { Watchdog } from './watchdog.ts'

/**
 * So many seconds without a step: in a call ten times what one takes, and longer than a template may take;
 * while the model is loaded, where a step can be a large read.
 */
const stallLimits = { call: (stepMs: number) => Math.max(15, Math.ceil(stepMs / 100)), load: 600 }
/** So long it may take to open its socket, and to let go when asked to. */
const startTimeoutMs = 30_000
const releaseTimeoutMs = 5_000
/** So long after its socket the process itself may end; how it exits says more. */
const exitGraceMs = 1_000

/** Not a failure: the app is going down. */
const engineClosedReason = 'the engine was closed'

interface PendingCall {
  push(event: GenerateEvent): void
  result(value: CallResult): void
  finish(error?: LlmError): void
}

export interface ProcessClientOptions {
  /** What to run: `@modelmount/core/model-process` */
  readonly file: string
  readonly runtimeDir: RuntimeDir
  /** Processes with the same name have loaded the same, in the same way. */
  readonly name: string
  readonly config: LoadConfig
  /** Whether it reads texts, and does not write: several at a time, on threads of their own. */
  readonly isPooling: () => Promise<boolean>
  /** Called when the model has to wait for memory. */
  readonly onMemoryWait: () => void
}

export class ProcessClient {
  /** Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<Footprint>
  readonly #options: ProcessClientOptions
  readonly #watchdog: Watchdog
  readonly #calls = new Map<number, PendingCall>()
  readonly #exited: Promise<void>
  #resolveExited: () => void = () => {}
  /** The one that we started, if it is that. */
  #launched: LaunchedProcess | undefined
  /** The one that we are connected to. */
  #record: ProcessRecord | undefined
  #socket: Socket | undefined
  /** It has said something. */
  #isJoined = false
  #readySettlers: { resolve(footprint: Footprint): void; reject(error: LlmError): void } | undefined
  /** Why it is meant to end. */
  #exitReason: string | undefined
  #footprint: Footprint | undefined
  #hasWaited = false
  #hasEnded = false
  #hasCrashed = false
  #isStuck = false
  #lastId = 0

  constructor(options: ProcessClientOptions) {
    this.#options = options
    this.ready = new Promise((resolve, reject) => {
      this.#readySettlers = { resolve, reject }
    })
    this.ready.catch(() => {}) // Whoever waits for it hears of it.
    this.#exited = new Promise((resolve) => {
      this.#resolveExited = resolve
    })
    this.#watchdog = new Watchdog(
      () => this.#send({ type: 'ping' }),
      (reason) => {
        this.#isStuck = true
        this.#kill(reason)
      },
    )
    this.#attach().catch((error: unknown) => this.#onExit('', LlmError.from(error)))
  }

  get id(): number | undefined {
    return this.#record?.processId ?? this.#launched?.child.pid
  }

  /** What it takes, once the model is loaded. */
  get footprint(): Footprint | undefined {
    return this.#footprint
  }

  /** Whether the model is not loaded yet for want of memory. */
  get isWaitingForMemory(): boolean {
    return this.#hasWaited && !this.#footprint
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Ended by a fault of its own, such as a failed assertion; not because somebody killed it, or a slow machine. */
  get hasCrashed(): boolean {
    return this.#hasCrashed
  }

  /** Ended because it gave no sign of life, or made no progress. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /**
   * Resolves when the model is free again; quietly when the signal aborts. Throws `LlmError`.
   *
   * @param onStart gets what is to be told of each token that was read, where the call says how many may wait
   */
  generate(
    request: GenerateRequest,
    call: EngineCall,
    push: (event: GenerateEvent) => void,
    onStart: (reportConsumed: (tokens: number) => void) => void = () => {},
  ): Promise<void> {
    return this.#runCall('generate', request, call, { push, result: () => {} }, (id) => {
      const { readAheadTokens } = call
      if (readAheadTokens !== undefined)
        onStart(this.#createConsumptionReporter(id, Math.ceil(readAheadTokens / 4)))
    })
  }

  /** Tells of several tokens together. */
  #createConsumptionReporter(id: number, batchTokens: number): (tokens: number) => void {
    let unreported = 0
    return (tokens) => {
      unreported += tokens
      if (unreported < batchTokens || !this.#calls.has(id)) return
      this.#send({ type: 'read', id, tokens: unreported })
      unreported = 0
    }
  }

  /**
   * Hears what comes of it, in one piece or several. Resolves when all is said; when the signal aborts, with less.
   * Throws `LlmError`.
   */
  request(
    type: Exclude<CallType, 'generate'>,
    request: object,
    call: EngineCall,
    result: (value: CallResult) => void,
  ): Promise<void> {
    return this.#runCall(type, request, call, { push: () => {}, result })
  }

  async #runCall(
    type: CallType,
    request: object,
    { signal, tenant = '', background = false, readAheadTokens }: EngineCall,
    handlers: Pick<PendingCall, 'push' | 'result'>,
    onStart: (id: number) => void = () => {},
  ): Promise<void> {
    const { stepMs } = await this.ready
    if (this.#hasEnded) throw this.#createExitError('')
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { ...handlers, finish: (error) => (error ? reject(error) : resolve()) })
        this.#onBusy(stallLimits.call(stepMs))
        this.#send({ type, id, request, tenant, background, ...(readAheadTokens && { readAheadTokens }) })
        onStart(id)
        signal.addEventListener('abort', cancel, { once: true })
        if (signal.aborted) cancel()
      })
    } finally {
      signal.removeEventListener('abort', cancel)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#onIdle()
    }
  }

  /** Ends running calls with an error. Resolves when it has let go of us; by then it has ended, if we were the last. */
  async release(): Promise<void> {
    if (this.#hasEnded) return
    this.#exitReason ??= 'nobody needed it any more'
    // One that nobody comes to leaves by itself.
    if (!this.#isJoined) this.#onExit()
    this.#send({ type: 'release' })
    const timer = setTimeout(() => this.#kill('it did not let go'), releaseTimeoutMs)
    await this.#exited
    clearTimeout(timer)
  }

  /** Ends running calls with an error. The process goes on for whoever else uses it, and for a while without. */
  close(): void {
    this.#exitReason ??= engineClosedReason
    this.#onExit()
  }

  /** Joins the process of this name, or starts it. */
  async #attach(): Promise<void> {
    const { name } = this.#options
    const runtimeDir = this.#ensureRuntimeDir()
    const deadline = performance.now() + startTimeoutMs
    for (let waitMs = 5; !this.#hasEnded; waitMs = Math.min(waitMs * 2, 50)) {
      const socket = await tryConnect(socketAddressOf(runtimeDir, name))
      if (this.#hasEnded) socket?.destroy()
      else if (socket && (await this.#join(socket, readRecord(runtimeDir, name)))) return
      if (this.#hasEnded) return
      if (performance.now() > deadline) return this.#giveUp()
      if (!this.#launched) await this.#launch(runtimeDir)
      await delay(waitMs)
    }
  }

  #giveUp(): void {
    this.#exitReason ??= 'it did not open its socket'
    this.#launched?.child.kill('SIGKILL')
    this.#onExit()
  }

  #ensureRuntimeDir(): string {
    try {
      return this.#options.runtimeDir.ensure()
    } catch (cause) {
      throw processNotStarted(errorCodeOf(cause), cause)
    }
  }

  async #launch(runtimeDir: string): Promise<void> {
    const { file, name, config, isPooling } = this.#options
    // With more pool threads, the two compute threads of a step often share a core.
    const poolThreads = (await isPooling()) ? config.threads : 1
    if (this.#hasEnded) return
    const launched = launchProcess(file, { ...config, runtimeDir, name }, poolThreads)
    this.#launched = launched
    const onExit = (exitStatus: string | number): void => {
      // Somebody else's was first.
      if (exitStatus === nameTakenExitCode) this.#launched = undefined
      else if (!this.#isJoined || this.#isOwnProcess) this.#onExit(exitStatus)
      removeFolder(launched.folder)
    }
    launched.child.once('exit', (code, signal) => onExit(signal ?? code ?? ''))
    launched.child.once('error', (error) => onExit(errorCodeOf(error)))
  }

  /** Resolves with its first word; with `false` where the connection ends before, as it does with one that leaves. */
  async #join(socket: Socket, record: ProcessRecord | undefined): Promise<boolean> {
    this.#socket = socket
    this.#record = record
    const isJoined = await new Promise<boolean>((resolve) => {
      receive(socket, (message) => {
        resolve(true)
        this.#isJoined = true
        this.#onMessage(FromProcess.parse(message) as FromProcess)
      })
      socket.once('close', () => resolve(false))
      this.#onBusy(stallLimits.load)
      this.#send({ type: 'ping' })
    })
    if (!isJoined) this.#watchdog.stop()
    else if (socket.destroyed) this.#onClose()
    else socket.once('close', () => this.#onClose())
    return isJoined
  }

  get #isOwnProcess(): boolean {
    return this.#launched !== undefined && this.#launched.child.pid === this.#record?.processId
  }

  #onMessage(message: FromProcess): void {
    switch (message.type) {
      case 'loaded':
        this.#footprint = message
        this.#readySettlers?.resolve(message)
        this.#onIdle()
        break
      case 'failed':
        this.#readySettlers?.reject(fromWireError(message.error))
        void this.release()
        break
      case 'waiting':
        this.#hasWaited = true
        this.#options.onMemoryWait()
        break
      case 'events':
        for (const { id, event } of message.events) this.#calls.get(id)?.push(event)
        break
      case 'result':
        this.#calls.get(message.id)?.result(message.value)
        break
      case 'done':
        this.#calls.get(message.id)?.finish(message.error && fromWireError(message.error))
        break
      case 'leaving':
        this.#exitReason ??= 'its memory was needed'
        break
      case 'pong':
        this.#watchdog.onPong(message.steps)
    }
  }

  /** The process is watched; while it works it keeps the app alive. */
  #onBusy(maxStalledTicks: number): void {
    this.#socket?.ref()
    this.#watchdog.start(maxStalledTicks)
  }

  #onIdle(): void {
    this.#socket?.unref()
    this.#watchdog.pause()
  }

  #send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  #kill(reason: string): void {
    // One that was stuck before we could join is replaced by another.
    if (this.#isJoined) this.#exitReason ??= reason
    if (this.#record) killProcess(this.#record)
    this.#socket?.destroy()
  }

  #onClose(): void {
    // Of our own we hear how it ended.
    if (this.#isOwnProcess && !this.#exitReason)
      setTimeout(() => this.#kill('its connection broke'), exitGraceMs).unref()
    else this.#onExit()
  }

  /** @param exitStatus its signal or exit code, where that is known */
  #onExit(exitStatus: string | number = '', cause = this.#createExitError(exitStatus)): void {
    if (this.#hasEnded) return
    const hasFailed = this.#isJoined && !this.#exitReason
    this.#hasCrashed =
      hasFailed && (exitStatus === '' ? this.#logTail !== '' : !externalSignals.has(exitStatus))
    this.#hasEnded = true
    this.#watchdog.stop()
    this.#socket?.destroy()
    this.#readySettlers?.reject(cause)
    for (const { finish } of this.#calls.values()) finish(cause)
    this.#resolveExited()
  }

  get #logTail(): string {
    const folder = this.#record?.folder ?? this.#launched?.folder
    return folder ? readLogTail(folder) : ''
  }

  #createExitError(exitStatus: string | number): LlmError {
    const signal = typeof exitStatus === 'number' ? `exit code ${exitStatus}` : exitStatus
    const why = this.#exitReason
      ? `, because ${this.#exitReason}`
      : ` unexpectedly (${signal || 'connection lost'})`
    const code = this.#exitReason === engineClosedReason ? 'overloaded' : 'upstream'
    return new LlmError(
      code,
      `The model process has ended${why}.`,
      {},
      { cause: new Error(`${signal}\n${this.#logTail}`) },
    )
  }
}

/** Somebody ended it, or the machine had no more memory. */
const externalSignals: ReadonlySet<string | number> = new Set(['SIGKILL', 'SIGTERM'])
