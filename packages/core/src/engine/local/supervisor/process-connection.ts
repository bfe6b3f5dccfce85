/**
 * Connection of an app to one model process. Joins the process with a given name if it is running, else
 * starts one.
 */
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { LlmError } from '../../../errors.ts'
import { receive, send, tryConnect } from '../ipc/framing.ts'
import { FromProcess, type ToProcess } from '../ipc/messages.ts'
import {
  diskFullExitCode,
  type LoadConfig,
  nameTakenExitCode,
  otherVersionExitCode,
  type ProcessRecord,
  packageVersion,
} from '../ipc/process-config.ts'
import { killProcess, type RuntimeDir, readRecord, socketAddressOf } from '../ipc/runtime-dir.ts'
import {
  errorCodeOf,
  type LaunchedProcess,
  launchProcess,
  processNotStarted,
  readLogTail,
  removeFolder,
  startFailed,
} from './launch.ts'

/** How long a new process may take to open its socket. */
const startTimeoutMs = 30_000
/** When an update has replaced files under a running app. */
const otherVersionReason =
  'another version of @modelmount/core or node-llama-cpp was installed since the app started. Restart the app'

export interface ConnectionOptions {
  /** The entry file: `@modelmount/core/model-process`. */
  readonly file: string
  readonly runtimeDir: RuntimeDir
  /** Processes with the same name have loaded the same model with the same settings. */
  readonly name: string
  readonly config: LoadConfig
  /**
   * Whether the model is a pooling model. Such a model evaluates several texts at a time, each on its own
   * thread.
   */
  readonly isPooling: () => Promise<boolean>
  /** Names of further environment variables that a new process inherits. */
  readonly environment: readonly string[]
}

export interface ConnectionHandlers {
  /** Called when the socket is open. The process has not answered yet. */
  onConnect(): void
  /** Called when an exiting process has closed the socket without an answer. Another attempt follows. */
  onRefused(): void
  onMessage(message: FromProcess): void
  /** Called when the socket of a joined process has closed. */
  onClose(): void
  /**
   * Called when the process has exited or did not open its socket in time.
   * @param exitStatus signal or exit code, if known
   * @param cause the error of a process that could not start
   */
  onExit(exitStatus?: string | number, cause?: LlmError): void
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

  /** Whether this app started the connected process. Only then does the app learn the exit status. */
  get isOwnProcess(): boolean {
    return this.#launched !== undefined && this.#launched.child.pid === this.#record?.processId
  }

  /** Sets whether the connection keeps the host app running. */
  setRef(isRef: boolean): void {
    if (isRef) this.#socket?.ref()
    else this.#socket?.unref()
  }

  send(message: ToProcess): void {
    if (this.#socket) send(this.#socket, message)
  }

  /** Kills the connected process. If the process was not joined yet, another attempt follows. */
  kill(): void {
    if (this.#record) killProcess(this.#record)
    this.#socket?.destroy()
  }

  /** Closes the connection, or stops the attempts to connect. The process keeps running. */
  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
  }

  readLogTail(): string {
    const folder = this.#record?.folder ?? this.#launched?.folder
    return folder ? readLogTail(folder) : ''
  }

  /** Joins the running process with this name, or starts one. Throws an `LlmError` `upstream`. */
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
    this.#handlers.onExit('', processNotStarted('it did not open its socket', new Error(this.readLogTail())))
  }

  #ensureRuntimeDir(): string {
    try {
      return this.#options.runtimeDir.ensure()
    } catch (cause) {
      throw startFailed(cause)
    }
  }

  async #launch(runtimeDir: string): Promise<void> {
    const { file, name, config, isPooling, environment } = this.#options
    // Generation needs one pool thread. With more, the two compute threads of a step often share a core.
    const poolThreads = (await isPooling()) ? config.threads : 1
    if (this.#isClosed) return
    const launched = launchProcess(
      file,
      { ...config, packageVersion, runtimeDir, name },
      poolThreads,
      environment,
    )
    this.#launched = launched
    const onExit = (exitStatus: string | number): void => {
      // A process of another app took the name first. The next attempt joins that process.
      if (exitStatus === nameTakenExitCode) this.#launched = undefined
      else if (exitStatus === otherVersionExitCode)
        this.#handlers.onExit(exitStatus, processNotStarted(otherVersionReason, undefined, { setup: true }))
      else if (exitStatus === diskFullExitCode)
        this.#handlers.onExit(exitStatus, startFailed(diskFull(runtimeDir)))
      else if (!this.#isJoined || this.isOwnProcess) this.#handlers.onExit(exitStatus)
      removeFolder(launched.folder)
    }
    launched.child.once('exit', (code, signal) => onExit(signal ?? code ?? ''))
    launched.child.once('error', (error) => onExit(errorCodeOf(error)))
  }

  /**
   * Resolves with `true` on the first message. Resolves with `false` if the socket closes first, as in an
   * exiting process.
   */
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

const diskFull = (runtimeDir: string): Error =>
  Object.assign(new Error(`ENOSPC: the disk of ${runtimeDir} is full`), { code: 'ENOSPC' })
