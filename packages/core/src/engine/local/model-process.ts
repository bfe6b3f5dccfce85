/** One model process, seen from the app: started, spoken to, watched, ended. */
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { receive, send } from './framing.ts'
import { codeOf, connected, lastWords, launch, removeFolder } from './launch.ts'
import { type Footprint, FromProcess, fromWire, type ProcessConfig, type ToProcess } from './protocol.ts'
import { Watch } from './watch.ts'

/** So many seconds without a step, in a call and while the model is loaded. A step of a load can be a large read. */
const maxStalled = { call: 60, load: 600 }
/** So long it may take to open its socket, and to leave when asked to. */
const startLimitMs = 30_000
const stopLimitMs = 5_000
/** So long after its socket the process itself may end; the exit says more. */
const exitAfterCloseMs = 1_000

/** Not a failure: the app is going down, or wants another model. */
const closed = 'the engine was closed'

interface RunningCall {
  push(event: GenerateEvent): void
  result(value: number | string): void
  finish(error?: LlmError): void
}

export class ModelProcess {
  /** Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<Footprint>
  readonly #folder: string
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #watch: Watch
  readonly #calls = new Map<number, RunningCall>()
  #socket: Socket | undefined
  #settle: { resolve(footprint: Footprint): void; reject(error: LlmError): void } | undefined
  /** Why we ended it ourselves. */
  #reason: string | undefined
  #footprint: Footprint | undefined
  #ended = false
  #crashed = false
  #lastId = 0

  /**
   * Throws `upstream` when it cannot be started.
   * @param file what to run: `@modelmount/core/model-process`
   */
  constructor(file: string, config: Omit<ProcessConfig, 'address' | 'folder'>) {
    const { child, folder, address } = launch(file, config)
    this.#child = child
    this.#folder = folder
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(this.#onExit(signal ?? `exit code ${code}`)))
      this.#child.once('error', (error) => resolve(this.#onExit(codeOf(error))))
    })
    this.ready = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ready.catch(() => {}) // Whoever waits for it hears of it.
    this.#watch = new Watch(
      () => this.#send({ type: 'ping' }),
      (reason) => this.#kill(reason),
    )
    void this.#attach(address)
  }

  get id(): number | undefined {
    return this.#child.pid
  }

  /** What it takes, once the model is loaded. */
  get footprint(): Footprint | undefined {
    return this.#footprint
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Ended by a fault of its own, such as a failed assertion; not because somebody killed it, or a slow machine. */
  get crashed(): boolean {
    return this.#crashed
  }

  /** Resolves when the model is free again; quietly when the signal aborts. Throws `LlmError`. */
  generate(request: GenerateRequest, call: EngineCall, push: (event: GenerateEvent) => void): Promise<void> {
    return this.#call('generate', request, call, { push, result: () => {} })
  }

  /** Resolves with nothing when the signal aborts. Throws `LlmError`. */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number | undefined> {
    return this.#ask('count', request, call)
  }

  /** Resolves with nothing when the signal aborts. Throws `LlmError`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string | undefined> {
    return this.#ask('render', request, call)
  }

  async #ask<T extends number | string>(
    type: 'count' | 'render',
    request: GenerateRequest,
    call: EngineCall,
  ): Promise<T | undefined> {
    let found: T | undefined
    const result = (value: number | string): void => {
      found = value as T
    }
    await this.#call(type, request, call, { push: () => {}, result })
    return found
  }

  async #call(
    type: 'generate' | 'count' | 'render',
    request: GenerateRequest,
    { signal, tenant = '' }: EngineCall,
    hear: Pick<RunningCall, 'push' | 'result'>,
  ): Promise<void> {
    await this.ready
    if (this.#ended) throw this.#gone('')
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { ...hear, finish: (error) => (error ? reject(error) : resolve()) })
        this.#work(maxStalled.call)
        this.#send({ type, id, request, tenant })
        signal.addEventListener('abort', cancel, { once: true })
        if (signal.aborted) cancel()
      })
    } finally {
      signal.removeEventListener('abort', cancel)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#rest()
    }
  }

  /** Ends running calls with an error, and the process. */
  async stop(): Promise<void> {
    if (this.#ended) return
    this.#reason ??= closed
    this.#child.ref()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopLimitMs)
    // It leaves with its last client; one that has no client yet does not know.
    if (this.#socket) this.#socket.destroy()
    else this.#child.kill('SIGKILL')
    await this.#exited
    clearTimeout(timer)
  }

  async #attach(address: string): Promise<void> {
    const limit = performance.now() + startLimitMs
    for (let waitMs = 5; !this.#ended; waitMs = Math.min(waitMs * 2, 50)) {
      try {
        this.#onConnection(await connected(address))
        return
      } catch {
        if (performance.now() > limit) this.#kill('it did not open its socket')
        await delay(waitMs)
      }
    }
  }

  #onConnection(socket: Socket): void {
    this.#socket = socket
    socket.on('error', () => {})
    socket.once('close', () => {
      if (!this.#reason) setTimeout(() => this.#kill('its connection broke'), exitAfterCloseMs).unref()
    })
    receive(socket, (message) => this.#onMessage(FromProcess.parse(message) as FromProcess))
    this.#work(maxStalled.load)
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
        void this.stop()
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
      case 'pong':
        this.#watch.onPong(message.steps)
    }
  }

  /** While it works the process is watched, and keeps the app alive; at rest neither. */
  #work(maxStalledTicks: number): void {
    this.#socket?.ref()
    this.#watch.start(maxStalledTicks)
  }

  #rest(): void {
    this.#socket?.unref()
    this.#watch.stop()
  }

  #send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  #kill(reason: string): void {
    if (this.#ended) return
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #onExit(how: string): void {
    // Before its socket was open it had not even looked at the model.
    this.#crashed ||= !!this.#socket && !this.#reason && how !== 'SIGKILL' && how !== 'SIGTERM'
    const error = this.#gone(how)
    this.#ended = true
    this.#rest()
    this.#socket?.destroy()
    this.#settle?.reject(error)
    for (const { finish } of this.#calls.values()) finish(error)
    removeFolder(this.#folder)
  }

  #gone(how: string): LlmError {
    const why = this.#reason ? `, because ${this.#reason}` : ` unexpectedly (${how})`
    const code = this.#reason === closed ? 'overloaded' : 'upstream'
    return new LlmError(
      code,
      `The model process has ended${why}.`,
      {},
      { cause: new Error(`${how}\n${lastWords(this.#folder)}`) },
    )
  }
}
