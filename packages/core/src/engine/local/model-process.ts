/** One model process, seen from the app: started, spoken to, watched, ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { receive, send } from './framing.ts'
import { FromProcess, fromWire, type ProcessConfig, type ToProcess } from './protocol.ts'
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
  count(tokens: number): void
  finish(error?: LlmError): void
}

export class ModelProcess {
  /** Resolves with the context size. Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<number>
  readonly #folder: string
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #watch: Watch
  readonly #calls = new Map<number, RunningCall>()
  #socket: Socket | undefined
  #settle: { resolve(contextSize: number): void; reject(error: LlmError): void } | undefined
  /** Why we ended it ourselves. */
  #reason: string | undefined
  #contextSize = 0
  #ended = false
  #crashed = false
  #lastId = 0

  /**
   * Throws `upstream` when it cannot be started.
   * @param file what to run: `@modelmount/core/model-process`
   */
  constructor(file: string, config: Omit<ProcessConfig, 'address' | 'folder'>) {
    if (!existsSync(file))
      throw notStarted('its file is missing. Where a bundler lost it, set `local.modelProcess`.')
    let address: string
    try {
      this.#folder = mkdtempSync(join(shortTemporaryFolder(), 'modelmount-'))
      address = addressIn(this.#folder)
      this.#child = start(file, { ...config, address, folder: this.#folder })
    } catch (cause) {
      throw notStarted(codeOf(cause), cause)
    }
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

  /** 0 until the model is loaded. */
  get contextSize(): number {
    return this.#contextSize
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Ended by a fault of its own, such as a failed assertion; not because somebody killed it, or a slow machine. */
  get crashed(): boolean {
    return this.#crashed
  }

  /** Resolves when the model is free again; quietly when the signal aborts. Throws `LlmError`. */
  generate(
    request: GenerateRequest,
    signal: AbortSignal,
    push: (event: GenerateEvent) => void,
  ): Promise<void> {
    return this.#call('generate', request, signal, { push, count: () => {} })
  }

  /** Resolves with nothing when the signal aborts. Throws `LlmError`. */
  async countTokens(request: GenerateRequest, signal: AbortSignal): Promise<number | undefined> {
    let counted: number | undefined
    const count = (tokens: number): void => {
      counted = tokens
    }
    await this.#call('count', request, signal, { push: () => {}, count })
    return counted
  }

  async #call(
    type: 'generate' | 'count',
    request: GenerateRequest,
    signal: AbortSignal,
    hear: Pick<RunningCall, 'push' | 'count'>,
  ): Promise<void> {
    await this.ready
    if (this.#ended) throw this.#gone('')
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { ...hear, finish: (error) => (error ? reject(error) : resolve()) })
        this.#work(maxStalled.call)
        this.#send({ type, id, request })
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
        this.#contextSize = message.contextSize
        this.#settle?.resolve(message.contextSize)
        this.#rest()
        break
      case 'failed':
        this.#settle?.reject(fromWire(message.error))
        void this.stop()
        break
      case 'event':
        this.#calls.get(message.id)?.push(message.event)
        break
      case 'counted':
        this.#calls.get(message.id)?.count(message.tokens)
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
    return new LlmError(code, `The model process has ended${why}.`, {}, { cause: this.#lastWords(how) })
  }

  /** What the native code wrote before it ended. */
  #lastWords(how: string): Error {
    try {
      return new Error(`${how}\n${readFileSync(logIn(this.#folder), 'utf8').slice(-2_000)}`)
    } catch {
      return new Error(how)
    }
  }
}

function start(file: string, config: ProcessConfig): ChildProcess {
  const log = openSync(logIn(config.folder), 'w')
  try {
    const child = spawn(process.execPath, [file, JSON.stringify(config)], {
      // A group of its own: Ctrl-C in a terminal goes to the whole group, and the app drains first.
      detached: true,
      windowsHide: true,
      stdio: ['ignore', log, log],
      // With more pool threads, two compute threads often share a core.
      env: { ...process.env, NODE_OPTIONS: undefined, UV_THREADPOOL_SIZE: '1' },
    })
    child.unref()
    return child
  } catch (error) {
    removeFolder(config.folder)
    throw error
  } finally {
    closeSync(log)
  }
}

function connected(address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(address)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

const logIn = (folder: string): string => join(folder, 'log')

const addressIn = (folder: string): string =>
  process.platform === 'win32'
    ? `\\\\.\\pipe\\modelmount-${randomBytes(12).toString('hex')}`
    : join(folder, 'socket')

/** The path of a Unix socket over about 100 bytes is silently cut, and the socket lands elsewhere. */
function shortTemporaryFolder(): string {
  const folder = tmpdir()
  return process.platform === 'win32' || Buffer.byteLength(folder) <= 70 ? folder : '/tmp'
}

/** What may be shown: the message of a system error has paths in it. */
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown reason'

/** In a listener of the host, where an error would end it; a folder that stays is the lesser evil. */
function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}

const notStarted = (why: string, cause?: unknown): LlmError =>
  new LlmError('upstream', `The model process cannot be started: ${why}`, {}, { cause })
