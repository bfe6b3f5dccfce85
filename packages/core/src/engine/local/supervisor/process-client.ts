/** One model process, seen from an app: started or joined, spoken to, watched, left. */
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../../errors.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { connected, receive, send } from '../ipc/framing.ts'
import {
  type Asking,
  type Footprint,
  FromProcess,
  fromWire,
  type LoadConfig,
  type ProcessRecord,
  type Result,
  type ToProcess,
  takenExitCode,
} from '../ipc/protocol.ts'
import { addressOf, killProcess, type RunFolder, readRecord } from '../ipc/runtime-dir.ts'
import { codeOf, type Launched, lastWords, launch, notStarted, removeFolder } from './launch.ts'
import { Watch } from './watchdog.ts'

/**
 * So many seconds without a step: in a call ten times what one takes, and longer than a template may take;
 * while the model is loaded, where a step can be a large read.
 */
const maxStalled = { call: (stepMs: number) => Math.max(15, Math.ceil(stepMs / 100)), load: 600 }
/** So long it may take to open its socket, and to let go when asked to. */
const startLimitMs = 30_000
const releaseLimitMs = 5_000
/** So long after its socket the process itself may end; how it exits says more. */
const exitAfterCloseMs = 1_000

/** Not a failure: the app is going down. */
const closed = 'the engine was closed'

interface RunningCall {
  push(event: GenerateEvent): void
  result(value: Result): void
  finish(error?: LlmError): void
}

export interface ModelProcessOptions {
  /** What to run: `@modelmount/core/model-process` */
  readonly file: string
  readonly runFolder: RunFolder
  /** Processes with the same name have loaded the same, in the same way. */
  readonly name: string
  readonly config: LoadConfig
  /** Whether it reads texts, and does not write: several at a time, on threads of their own. */
  readonly reads: () => Promise<boolean>
  /** Called when the model has to wait for memory. */
  readonly onWaiting: () => void
}

export class ModelProcess {
  /** Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<Footprint>
  readonly #options: ModelProcessOptions
  readonly #watch: Watch
  readonly #calls = new Map<number, RunningCall>()
  readonly #gone: Promise<void>
  #settleGone: () => void = () => {}
  /** The one that we started, if it is that. */
  #started: Launched | undefined
  /** The one that we are connected to. */
  #record: ProcessRecord | undefined
  #socket: Socket | undefined
  /** It has said something. */
  #isJoined = false
  #settle: { resolve(footprint: Footprint): void; reject(error: LlmError): void } | undefined
  /** Why it is meant to end. */
  #reason: string | undefined
  #footprint: Footprint | undefined
  #hasWaited = false
  #ended = false
  #crashed = false
  #stuck = false
  #lastId = 0

  constructor(options: ModelProcessOptions) {
    this.#options = options
    this.ready = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ready.catch(() => {}) // Whoever waits for it hears of it.
    this.#gone = new Promise((resolve) => {
      this.#settleGone = resolve
    })
    this.#watch = new Watch(
      () => this.#send({ type: 'ping' }),
      (reason) => {
        this.#stuck = true
        this.#kill(reason)
      },
    )
    this.#attach().catch((error: unknown) => this.#onGone('', LlmError.from(error)))
  }

  get id(): number | undefined {
    return this.#record?.processId ?? this.#started?.child.pid
  }

  /** What it takes, once the model is loaded. */
  get footprint(): Footprint | undefined {
    return this.#footprint
  }

  /** Whether the model is not loaded yet for want of memory. */
  get isWaiting(): boolean {
    return this.#hasWaited && !this.#footprint
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Ended by a fault of its own, such as a failed assertion; not because somebody killed it, or a slow machine. */
  get crashed(): boolean {
    return this.#crashed
  }

  /** Ended because it gave no sign of life, or made no progress. */
  get stuck(): boolean {
    return this.#stuck
  }

  /**
   * Resolves when the model is free again; quietly when the signal aborts. Throws `LlmError`.
   *
   * @param onBegin gets what is to be told of each token that was read, where the call says how many may wait
   */
  generate(
    request: GenerateRequest,
    call: EngineCall,
    push: (event: GenerateEvent) => void,
    onBegin: (tell: (tokens: number) => void) => void = () => {},
  ): Promise<void> {
    return this.#call('generate', request, call, { push, result: () => {} }, (id) => {
      const { readAheadTokens } = call
      if (readAheadTokens !== undefined) onBegin(this.#reader(id, Math.ceil(readAheadTokens / 4)))
    })
  }

  /** Tells of several tokens together. */
  #reader(id: number, together: number): (tokens: number) => void {
    let untold = 0
    return (tokens) => {
      untold += tokens
      if (untold < together || !this.#calls.has(id)) return
      this.#send({ type: 'read', id, tokens: untold })
      untold = 0
    }
  }

  /**
   * Hears what comes of it, in one piece or several. Resolves when all is said; when the signal aborts, with less.
   * Throws `LlmError`.
   */
  ask(
    type: Exclude<Asking, 'generate'>,
    request: object,
    call: EngineCall,
    result: (value: Result) => void,
  ): Promise<void> {
    return this.#call(type, request, call, { push: () => {}, result })
  }

  async #call(
    type: Asking,
    request: object,
    { signal, tenant = '', background = false, readAheadTokens }: EngineCall,
    hear: Pick<RunningCall, 'push' | 'result'>,
    onBegin: (id: number) => void = () => {},
  ): Promise<void> {
    const { stepMs } = await this.ready
    if (this.#ended) throw this.#whyGone('')
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { ...hear, finish: (error) => (error ? reject(error) : resolve()) })
        this.#work(maxStalled.call(stepMs))
        this.#send({ type, id, request, tenant, background, ...(readAheadTokens && { readAheadTokens }) })
        onBegin(id)
        signal.addEventListener('abort', cancel, { once: true })
        if (signal.aborted) cancel()
      })
    } finally {
      signal.removeEventListener('abort', cancel)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#rest()
    }
  }

  /** Ends running calls with an error. Resolves when it has let go of us; by then it has ended, if we were the last. */
  async release(): Promise<void> {
    if (this.#ended) return
    this.#reason ??= 'nobody needed it any more'
    // One that nobody comes to leaves by itself.
    if (!this.#isJoined) this.#onGone()
    this.#send({ type: 'release' })
    const timer = setTimeout(() => this.#kill('it did not let go'), releaseLimitMs)
    await this.#gone
    clearTimeout(timer)
  }

  /** Ends running calls with an error. The process goes on for whoever else uses it, and for a while without. */
  close(): void {
    this.#reason ??= closed
    this.#onGone()
  }

  /** Joins the process of this name, or starts it. */
  async #attach(): Promise<void> {
    const { name } = this.#options
    const runFolder = this.#enter()
    const limit = performance.now() + startLimitMs
    for (let waitMs = 5; !this.#ended; waitMs = Math.min(waitMs * 2, 50)) {
      const socket = await connected(addressOf(runFolder, name))
      if (this.#ended) socket?.destroy()
      else if (socket && (await this.#join(socket, readRecord(runFolder, name)))) return
      if (this.#ended) return
      if (performance.now() > limit) return this.#giveUp()
      if (!this.#started) await this.#launch(runFolder)
      await delay(waitMs)
    }
  }

  #giveUp(): void {
    this.#reason ??= 'it did not open its socket'
    this.#started?.child.kill('SIGKILL')
    this.#onGone()
  }

  #enter(): string {
    try {
      return this.#options.runFolder.enter()
    } catch (cause) {
      throw notStarted(codeOf(cause), cause)
    }
  }

  async #launch(runFolder: string): Promise<void> {
    const { file, name, config, reads } = this.#options
    // With more pool threads, the two compute threads of a step often share a core.
    const poolThreads = (await reads()) ? config.threads : 1
    if (this.#ended) return
    const launched = launch(file, { ...config, runFolder, name }, poolThreads)
    this.#started = launched
    const onExit = (how: string | number): void => {
      // Somebody else's was first.
      if (how === takenExitCode) this.#started = undefined
      else if (!this.#isJoined || this.#isOurs) this.#onGone(how)
      removeFolder(launched.folder)
    }
    launched.child.once('exit', (code, signal) => onExit(signal ?? code ?? ''))
    launched.child.once('error', (error) => onExit(codeOf(error)))
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
      this.#work(maxStalled.load)
      this.#send({ type: 'ping' })
    })
    if (!isJoined) this.#watch.stop()
    else if (socket.destroyed) this.#onClose()
    else socket.once('close', () => this.#onClose())
    return isJoined
  }

  get #isOurs(): boolean {
    return this.#started !== undefined && this.#started.child.pid === this.#record?.processId
  }

  #onMessage(message: FromProcess): void {
    switch (message.type) {
      case 'loaded':
        this.#footprint = message
        this.#settle?.resolve(message)
        this.#rest()
        break
      case 'failed':
        this.#settle?.reject(fromWire(message.error))
        void this.release()
        break
      case 'waiting':
        this.#hasWaited = true
        this.#options.onWaiting()
        break
      case 'events':
        for (const { id, event } of message.events) this.#calls.get(id)?.push(event)
        break
      case 'result':
        this.#calls.get(message.id)?.result(message.value)
        break
      case 'done':
        this.#calls.get(message.id)?.finish(message.error && fromWire(message.error))
        break
      case 'leaving':
        this.#reason ??= 'its memory was needed'
        break
      case 'pong':
        this.#watch.onPong(message.steps)
    }
  }

  /** The process is watched; while it works it keeps the app alive. */
  #work(maxStalledTicks: number): void {
    this.#socket?.ref()
    this.#watch.start(maxStalledTicks)
  }

  #rest(): void {
    this.#socket?.unref()
    this.#watch.rest()
  }

  #send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  #kill(reason: string): void {
    // One that was stuck before we could join is replaced by another.
    if (this.#isJoined) this.#reason ??= reason
    if (this.#record) killProcess(this.#record)
    this.#socket?.destroy()
  }

  #onClose(): void {
    // Of our own we hear how it ended.
    if (this.#isOurs && !this.#reason)
      setTimeout(() => this.#kill('its connection broke'), exitAfterCloseMs).unref()
    else this.#onGone()
  }

  /** @param how its signal or exit code, where that is known */
  #onGone(how: string | number = '', cause = this.#whyGone(how)): void {
    if (this.#ended) return
    const hasFailed = this.#isJoined && !this.#reason
    this.#crashed = hasFailed && (how === '' ? this.#lastWords !== '' : !mildSignals.has(how))
    this.#ended = true
    this.#watch.stop()
    this.#socket?.destroy()
    this.#settle?.reject(cause)
    for (const { finish } of this.#calls.values()) finish(cause)
    this.#settleGone()
  }

  get #lastWords(): string {
    const folder = this.#record?.folder ?? this.#started?.folder
    return folder ? lastWords(folder) : ''
  }

  #whyGone(how: string | number): LlmError {
    const signal = typeof how === 'number' ? `exit code ${how}` : how
    const why = this.#reason ? `, because ${this.#reason}` : ` unexpectedly (${signal || 'connection lost'})`
    const code = this.#reason === closed ? 'overloaded' : 'upstream'
    return new LlmError(
      code,
      `The model process has ended${why}.`,
      {},
      { cause: new Error(`${signal}\n${this.#lastWords}`) },
    )
  }
}

/** Somebody ended it, or the machine had no more memory. */
const mildSignals: ReadonlySet<string | number> = new Set(['SIGKILL', 'SIGTERM'])
