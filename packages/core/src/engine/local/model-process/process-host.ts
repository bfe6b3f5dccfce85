import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { toWireError } from '../../wire/wire-error.ts'
import type { FromProcess, ProcessActivity } from '../ipc/messages.ts'
import { diskFullExitCode, nameTakenExitCode, type ProcessConfig } from '../ipc/process-config.ts'
import { isDiskFull } from '../ipc/runtime-dir.ts'
import { ClientConnection, type ConnectionHost } from './client-connection.ts'
import { GrammarBuilder } from './grammar-builder.ts'
import type { RuntimeModel, StepCounter } from './model.ts'
import { PromptRenderer } from './render.ts'
import { claimName } from './resources/claim.ts'
import { coresPerProcess } from './resources/cores.ts'
import type { MemoryBroker } from './resources/load-plan.ts'
import { MachineShare } from './resources/machine-share.ts'
import type { Runner } from './runner.ts'
import { stepsBesideDecoding } from './steps-beside-decoding.ts'
import { TenantCpu } from './workers/cpu-budget.ts'

/**
 * Time that a process waits for its first client. If the app crashes before it connects, the process ends
 * after this time.
 */
const firstClientTimeoutMs = 10_000
/** Time that a process stays after its last client. An app that restarts finds the model still loaded. */
const nextClientTimeoutMs = 5_000
/** How long native code may take to finish its step at shutdown. */
const lastStepTimeoutMs = 5_000

/** One loaded model and its clients. Ends the process some time after the last client has left. */
export class ProcessHost implements ConnectionHost {
  /** Steps of all work. The watchdog of the app reads them through `progress`. */
  readonly #steps: StepCounter = { steps: 0 }
  readonly progress = stepsBesideDecoding(this.#steps, () => this.#runner?.isDecoding ?? false)
  readonly tenantCpu = new TenantCpu({ isDecoding: () => this.#runner?.isDecoding ?? false })
  readonly renderer = new PromptRenderer(this.progress)
  readonly grammars = new GrammarBuilder(this.progress)
  readonly model: Promise<RuntimeModel>
  readonly #config: ProcessConfig
  readonly #machineShare: MachineShare
  readonly #server = createServer((socket) => void new ClientConnection(socket, this))
  readonly #clients = new Set<ClientConnection>()
  #exitTimer: NodeJS.Timeout
  #runner: Runner | undefined
  #isShuttingDown = false
  #isWaitingForMemory = false
  /** Clients that want to know the progress of the load. */
  readonly #loadWatchers = new Set<ClientConnection>()
  #loadedFraction = 0

  constructor(config: ProcessConfig) {
    this.#config = config
    this.#machineShare = new MachineShare(config)
    this.#exitTimer = setTimeout(() => this.#shutDown(), firstClientTimeoutMs)
    this.model = this.#load()
    // `onJoin` reports a failed load to every client, even if it connects later.
    this.model.catch(() => this.#machineShare.onLoadFailed())
  }

  get isShuttingDown(): boolean {
    return this.#isShuttingDown
  }

  get activity(): ProcessActivity | undefined {
    return this.#runner && { ...this.#runner.activity, memoryBytes: process.memoryUsage.rss() }
  }

  onCall(): void {
    this.#machineShare.onCall()
  }

  onCallEnd(): void {
    this.#machineShare.onCallEnd()
  }

  wake(): void {
    this.#runner?.wake()
  }

  release(client: ClientConnection): void {
    this.#clients.delete(client)
    if (this.#clients.size === 0) this.#shutDown()
    else client.close()
  }

  onJoin(client: ClientConnection): void {
    this.#clients.add(client)
    clearTimeout(this.#exitTimer)
    if (this.#isWaitingForMemory) client.send({ type: 'waiting' })
    this.model.then(
      ({ contextSize, sizeBytes, gpuBytes, gpuLayers, stepMs, notes, task }) =>
        client.send({ type: 'loaded', contextSize, sizeBytes, gpuBytes, gpuLayers, stepMs, notes, task }),
      (error: unknown) => client.send({ type: 'failed', error: toWireError(error) }),
    )
  }

  onClose(client: ClientConnection): void {
    this.#loadWatchers.delete(client)
    if (this.#clients.delete(client) && this.#clients.size === 0)
      this.#exitTimer = setTimeout(() => this.#shutDown(), nextClientTimeoutMs)
  }

  yieldMemory(): boolean {
    if (this.#machineShare.isBusy) return false
    this.#broadcast({ type: 'leaving' })
    this.#shutDown()
    return true
  }

  /** Listens on the socket before it loads the model, so that apps can ask for the load progress. */
  async #load(): Promise<RuntimeModel> {
    const claim = claimName(this.#config, this.#server, this.#machineShare.record)
    if (!(await claim.catch((cause) => this.#exitUnnamed(cause)))) process.exit(nameTakenExitCode)
    const { loadModel } = await import('./llama/load.ts')
    const onWait = (): void => this.#onMemoryWait()
    const memory: MemoryBroker = {
      reserve: (need, readVram) => this.#machineShare.reserve(need, readVram),
      waitForMemory: () => this.#machineShare.waitForMemory(onWait),
      waitForVramLoads: () => this.#machineShare.waitForVramLoads(onWait),
    }
    const warn = (text: string): void => this.#broadcast({ type: 'warning', text })
    const onProgress = (fraction: number): void => this.#onLoadProgress(fraction)
    const model = await loadModel(this.#config, this.#steps, undefined, memory, warn, onProgress)
    this.#runner = model.runner
    const { sizeBytes, gpuBytes, mappedBytes } = model
    this.#machineShare.onLoaded({ ram: sizeBytes - gpuBytes, vram: gpuBytes, mapped: mappedBytes })
    this.#machineShare.watchBusy((busy) => model.limitThreads(coresPerProcess(busy)))
    return model
  }

  /** Without a socket, no app can ask why the load failed. The exit code and the log tell it. */
  #exitUnnamed(cause: unknown): never {
    try {
      process.stderr.write(`${cause instanceof Error ? cause.stack : cause}\n`)
    } catch {} // The log is on the full disk, too.
    process.exit(isDiskFull(cause) ? diskFullExitCode : 1)
  }

  #broadcast(message: FromProcess): void {
    for (const client of this.#clients) client.send(message)
  }

  watchLoad(client: ClientConnection): void {
    this.#loadWatchers.add(client)
    if (this.#loadedFraction > 0) client.send({ type: 'loading', fraction: this.#loadedFraction })
  }

  #onLoadProgress(fraction: number): void {
    // llama.cpp reports each tensor. A percent is enough for a reader.
    if (fraction < this.#loadedFraction + 0.01 && fraction < 1) return
    this.#loadedFraction = Math.min(1, fraction)
    for (const client of this.#loadWatchers) client.send({ type: 'loading', fraction: this.#loadedFraction })
  }

  #onMemoryWait(): void {
    if (!this.#isWaitingForMemory) this.#broadcast({ type: 'waiting' })
    this.#isWaitingForMemory = true
  }

  /** Waits for the running step, since native code may crash when the process exits during a step. */
  #shutDown(): void {
    if (this.#isShuttingDown) return
    this.#isShuttingDown = true
    clearTimeout(this.#exitTimer)
    this.#machineShare.end()
    this.#server.close()
    const exit = (): void => {
      rmSync(this.#config.folder, { recursive: true, force: true })
      process.exit(0)
    }
    setTimeout(exit, lastStepTimeoutMs)
    void (this.#runner?.whenIdle() ?? Promise.resolve()).then(exit)
  }
}
