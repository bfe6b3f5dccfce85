/** The connection of an app to one model process: joins the process of a name, or starts it. */
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { receive, send, tryConnect } from '../ipc/framing.ts'
import { FromProcess, type ToProcess } from '../ipc/messages.ts'
import { type LoadConfig, nameTakenExitCode, type ProcessRecord } from '../ipc/process-config.ts'
import { killProcess, type RuntimeDir, readRecord, socketAddressOf } from '../ipc/runtime-dir.ts'
import {
  errorCodeOf,
  type LaunchedProcess,
  launchProcess,
  processNotStarted,
  readLogTail,
  removeFolder,
} from './launch.ts'

/** How long a new process may take to open its socket. */
const startTimeoutMs = 30_000

export interface ConnectionOptions {
  /** The entry file: `@modelmount/core/model-process` */
  readonly file: string
  readonly runtimeDir: RuntimeDir
  /** Processes with the same name have loaded the same model with the same settings. */
  readonly name: string
  readonly config: LoadConfig
  /** Whether the model is a pooling model, which evaluates several texts at a time on threads of its own. */
  readonly isPooling: () => Promise<boolean>
}

export interface ConnectionHandlers {
  /** The socket is open, but the process has not answered yet. */
  onConnect(): void
  /** The process was exiting and closed the socket without an answer; another attempt follows. */
  onRefused(): void
  onMessage(message: FromProcess): void
  /** The socket of a joined process was closed. */
  onClose(): void
  /** The process has exited, with its signal or exit code if known, or was given up for a reason. */
  onExit(exitStatus?: string | number, reason?: string): void
}

export class ProcessConnection {
  readonly #options: ConnectionOptions
  readonly #handlers: ConnectionHandlers
  /** The process that this app started, if any. */
  #launched: LaunchedProcess | undefined
  /** The process at the other end of the socket. */
  #record: ProcessRecord | undefined
  #socket: Socket | undefined
  #isJoined = false
  #isClosed = false

  constructor(options: ConnectionOptions, handlers: ConnectionHandlers) {
    this.#options = options
    this.#handlers = handlers
  }

  get processId(): number | undefined {
    return this.#record?.processId ?? this.#launched?.child.pid
  }

  /** Whether the connection works: the process has sent its first message. */
  get isJoined(): boolean {
    return this.#isJoined
  }

  /** Whether this app started the connected process, and so learns how it exits. */
  get isOwnProcess(): boolean {
    return this.#launched !== undefined && this.#launched.child.pid === this.#record?.processId
  }

  /** Keeps the app alive, or not. */
  setRef(isRef: boolean): void {
    if (isRef) this.#socket?.ref()
    else this.#socket?.unref()
  }

  send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  /** Kills the connected process. One that was not joined yet is replaced by another. */
  kill(): void {
    if (this.#record) killProcess(this.#record)
    this.#socket?.destroy()
  }

  /** Ends the connection or the attempts. The process runs on. */
  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
  }

  readLogTail(): string {
    const folder = this.#record?.folder ?? this.#launched?.folder
    return folder ? readLogTail(folder) : ''
  }

  /** Joins the process of this name, or starts it. Throws `upstream`. */
  async attach(): Promise<void> {
    const { name } = this.#options
    const runtimeDir = this.#ensureRuntimeDir()
    const deadline = performance.now() + startTimeoutMs
    for (let waitMs = 5; !this.#isClosed; waitMs = Math.min(waitMs * 2, 50)) {
      const socket = await tryConnect(socketAddressOf(runtimeDir, name))
      if (this.#isClosed) socket?.destroy()
      else if (socket && (await this.#join(socket, readRecord(runtimeDir, name)))) return
      if (this.#isClosed) return
      if (performance.now() > deadline) return this.#giveUp()
      if (!this.#launched) await this.#launch(runtimeDir)
      await delay(waitMs)
    }
  }

  #giveUp(): void {
    this.#launched?.child.kill('SIGKILL')
    this.#handlers.onExit('', 'it did not open its socket')
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
    if (this.#isClosed) return
    const launched = launchProcess(file, { ...config, runtimeDir, name }, poolThreads)
    this.#launched = launched
    const onExit = (exitStatus: string | number): void => {
      // The process of another app was faster: join that.
      if (exitStatus === nameTakenExitCode) this.#launched = undefined
      else if (!this.#isJoined || this.isOwnProcess) this.#handlers.onExit(exitStatus)
      removeFolder(launched.folder)
    }
    launched.child.once('exit', (code, signal) => onExit(signal ?? code ?? ''))
    launched.child.once('error', (error) => onExit(errorCodeOf(error)))
  }

  /** Resolves with `true` on the first message, with `false` when the socket closes before, as an exiting process does. */
  async #join(socket: Socket, record: ProcessRecord | undefined): Promise<boolean> {
    this.#socket = socket
    this.#record = record
    const isJoined = await new Promise<boolean>((resolve) => {
      receive(socket, (message) => {
        resolve(true)
        this.#isJoined = true
        this.#handlers.onMessage(FromProcess.parse(message) as FromProcess)
      })
      socket.once('close', () => resolve(false))
      this.#handlers.onConnect()
    })
    if (!isJoined) this.#handlers.onRefused()
    else if (socket.destroyed) this.#handlers.onClose()
    else socket.once('close', () => this.#handlers.onClose())
    return isJoined
  }
}
