/** One model process, seen from the app: started, spoken to, watched, ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LlmError } from '../../errors.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { receive, send } from './framing.ts'
import { FromProcess, fromWire, type ProcessConfig, type ToProcess } from './protocol.ts'

/** While there is work, a ping goes out at each tick. Ticks are counted, not time: an app that was stopped sends none. */
const tickMs = 1_000
/** So many pings without an answer: its event loop is stuck. */
const maxUnanswered = 5
/** So many ticks without a step while a call runs, or while the model loads: its native code is stuck. */
const maxStalled = { ready: 60, starting: 600, ended: 0 }
/** So long it may take to open its socket, and to leave when asked to. */
const startLimitMs = 30_000
const stopLimitMs = 5_000

interface RunningCall {
  push(event: GenerateEvent): void
  finish(error?: LlmError): void
}

export class ModelProcess {
  /** Resolves with the context size. Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<number>
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #exited: Promise<void>
  readonly #calls = new Map<number, RunningCall>()
  #socket: Socket | undefined
  #state: 'starting' | 'ready' | 'ended' = 'starting'
  #settle: { resolve(contextSize: number): void; reject(error: LlmError): void } | undefined
  /** Why we ended it ourselves. */
  #reason: string | undefined
  #lastId = 0
  #timer: NodeJS.Timeout | undefined
  #unanswered = 0
  #steps = 0
  #stalled = 0

  /** @param file what to run: `@modelmount/core/model-process` */
  constructor(file: string, config: Omit<ProcessConfig, 'address' | 'folder'>) {
    this.#folder = mkdtempSync(join(shortTemporaryFolder(), 'modelmount-'))
    const address =
      process.platform === 'win32'
        ? `\\\\.\\pipe\\modelmount-${randomBytes(12).toString('hex')}`
        : join(this.#folder, 'socket')
    const log = openSync(join(this.#folder, 'log'), 'w')
    this.#child = spawn(
      process.execPath,
      [file, JSON.stringify({ ...config, address, folder: this.#folder })],
      {
        // A group of its own: Ctrl-C in a terminal goes to the whole group, and the app drains first.
        detached: true,
        windowsHide: true,
        stdio: ['ignore', log, log],
        // With more pool threads, two compute threads often share a core.
        env: { ...process.env, NODE_OPTIONS: undefined, UV_THREADPOOL_SIZE: '1' },
      },
    )
    closeSync(log)
    this.#child.unref()
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(this.#onExit(signal ?? `exit code ${code}`)))
      this.#child.once('error', (error) => resolve(this.#onExit(error.message)))
    })
    this.ready = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ready.catch(() => {}) // Whoever waits for it hears of it.
    void this.#attach(address)
  }

  get id(): number | undefined {
    return this.#child.pid
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Resolves when the model is free again; quietly when the signal aborts. Throws `LlmError`. */
  async generate(
    request: GenerateRequest,
    signal: AbortSignal,
    push: (event: GenerateEvent) => void,
  ): Promise<void> {
    await this.ready
    if (this.ended) throw this.#gone('')
    const id = ++this.#lastId
    const cancel = (): void => this.#send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { push, finish: (error) => (error ? reject(error) : resolve()) })
        this.#watch()
        this.#send({ type: 'generate', id, request })
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
    if (this.ended) return
    this.#reason ??= 'the engine was closed'
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
    for (let waitMs = 5; !this.ended; waitMs = Math.min(waitMs * 2, 50)) {
      try {
        this.#socket = await connected(address)
        break
      } catch {
        if (performance.now() > limit) return this.#kill('it did not open its socket')
        await delay(waitMs)
      }
    }
    const socket = this.#socket
    if (!socket) return
    socket.on('error', () => {})
    // Mostly because it has ended, which we are about to hear with the cause.
    socket.once('close', () => setTimeout(() => this.#kill('its connection broke'), tickMs).unref())
    receive(socket, (message) => this.#onMessage(FromProcess.parse(message) as FromProcess))
    this.#watch()
  }

  #onMessage(message: FromProcess): void {
    switch (message.type) {
      case 'loaded':
        this.#state = 'ready'
        this.#settle?.resolve(message.contextSize)
        if (this.#calls.size === 0) this.#rest()
        break
      case 'failed':
        this.#settle?.reject(fromWire(message.error))
        void this.stop()
        break
      case 'event':
        this.#calls.get(message.id)?.push(message.event)
        break
      case 'done':
        this.#calls.get(message.id)?.finish(message.error && fromWire(message.error))
        break
      case 'pong':
        this.#unanswered = 0
        if (message.steps !== this.#steps) this.#stalled = 0
        this.#steps = message.steps
    }
  }

  /** While there is work the process is pinged, and keeps the app alive. */
  #watch(): void {
    this.#socket?.ref()
    this.#unanswered = 0
    this.#stalled = 0
    this.#timer ??= setInterval(() => {
      if (this.#unanswered >= maxUnanswered) this.#kill('it stopped answering')
      if (this.#stalled >= maxStalled[this.#state]) this.#kill('it made no progress')
      this.#unanswered++
      this.#stalled++
      this.#send({ type: 'ping' })
    }, tickMs)
  }

  #rest(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#socket?.unref()
  }

  #send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  #kill(reason: string): void {
    if (this.ended) return
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #onExit(how: string): void {
    const error = this.#gone(how)
    this.#state = 'ended'
    this.#rest()
    this.#socket?.destroy()
    rmSync(this.#folder, { recursive: true, force: true })
    this.#settle?.reject(error)
    for (const { finish } of this.#calls.values()) finish(error)
  }

  #gone(how: string): LlmError {
    const reason = this.#reason ? `, because ${this.#reason}` : ''
    const cause = new Error(`${how}\n${this.#logTail()}`)
    return new LlmError(
      'upstream',
      `The model process has ended${reason || ` unexpectedly (${how})`}.`,
      {},
      { cause },
    )
  }

  #logTail(): string {
    try {
      return readFileSync(join(this.#folder, 'log'), 'utf8').slice(-2_000)
    } catch {
      return ''
    }
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

/** The path of a Unix socket over about 100 bytes is silently cut, and the socket lands elsewhere. */
function shortTemporaryFolder(): string {
  const folder = tmpdir()
  return process.platform === 'win32' || Buffer.byteLength(folder) <= 70 ? folder : '/tmp'
}
