/** Client of one model process. Runs calls, watches their progress and reports how the process ended. */
import { LlmError } from '../../../errors.ts'
import type { EngineCall, ModelActivity } from '../../engine.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { fromWireError } from '../../wire/wire-error.ts'
import type { CallResult, CallType, Footprint, FromProcess, ProcessActivity } from '../ipc/messages.ts'
import { createConsumptionReporter } from '../ipc/reader-lag.ts'
import type { CacheEviction, ModelEnd } from '../model-events.ts'
import { isOutput } from './failures.ts'
import { type ConnectionOptions, ProcessConnection } from './process-connection.ts'
import { Watchdog } from './watchdog.ts'

/**
 * Seconds without progress after which a process counts as stuck. In a call, the limit is ten times the
 * estimated duration of the longest decode or prefill step. It is at least 15 s, since a template may render
 * for 10 s. During load, many gigabytes may be read between two signs of progress.
 */
const stallLimits = { call: (stepMs: number) => Math.max(15, Math.ceil(stepMs / 100)), load: 600 }
/** How long a process may take to confirm a release by closing the connection. */
const releaseTimeoutMs = 5_000
/**
 * How long to wait for the exit status after the socket has closed. The status is a better explanation than
 * the closed socket.
 */
const exitGraceMs = 1_000

/**
 * How many tokens of an answer the process may generate before they are pulled. They are pulled at once, unless
 * the buffer of a slow reader is full.
 */
const readAheadTokens = 128

/** Part of a load that is complete when all weights are loaded. */
const weightsPart = 0.95

/** Exit reason when the app shuts down. This reason does not count as a failure of the process. */
const engineClosedReason = 'the engine was closed'

/** Exit reasons of an eviction: for another model of the machine, and of this app. */
const memoryNeededReason = 'its memory was needed'
const placeNeededReason = 'another model needed its place'

const connectionBrokeReason = 'its connection broke'

/** A call in one model process. */
export interface ProcessCall extends EngineCall {
  /** Id of the call that counted the same prompt in this process. */
  readonly countedBy?: number | undefined
}

interface PendingCall {
  push(event: GenerateEvent): void
  result(value: CallResult): void
  finish(error?: LlmError): void
}

export interface ProcessClientOptions extends ConnectionOptions {
  /** Called when the load has to wait for memory. */
  readonly onMemoryWait: () => void
  /** Receives problems that fail no call. */
  readonly onWarning: (message: string) => void
  readonly onCacheEvict: (eviction: Omit<CacheEviction, 'type' | 'model'>) => void
  /**
   * Called when the process has ended, or no longer serves this app.
   *
   * @param reason undefined for a process that ended by itself
   */
  readonly onEnd: (type: ModelEnd['type'], reason: string | undefined) => void
}

export class ProcessClient {
  /** Rejects with an `LlmError` when the model cannot be loaded. */
  readonly ready: Promise<Footprint>
  readonly #onMemoryWait: () => void
  readonly #onWarning: (message: string) => void
  readonly #onEnd: ProcessClientOptions['onEnd']
  readonly #onCacheEvict: ProcessClientOptions['onCacheEvict']
  readonly #connection: ProcessConnection
  readonly #watchdog: Watchdog
  readonly #calls = new Map<number, PendingCall>()
  readonly #exited: Promise<void>
  #resolveExited: () => void = () => {}
  #readySettlers: { resolve(footprint: Footprint): void; reject(error: LlmError): void } | undefined
  /** Why the process was ended on purpose, by the app or by itself. */
  #exitReason: string | undefined
  #footprint: Footprint | undefined
  readonly #loadWatchers = new Set<(fraction: number) => void>()
  #loadedFraction = 0
  #hasWaited = false
  #hasEnded = false
  #hasCrashed = false
  #isStuck = false
  #lastId = 0
  /** Calls of `ping` that wait for an answer. */
  readonly #pings = new Set<{ resolve(): void; reject(error: LlmError): void }>()
  #activity: ModelActivity | undefined
  /** As the process has last reported it. */
  #evicted: ProcessActivity['evicted'] | undefined
  #lastTokenAt = Number.NEGATIVE_INFINITY

  constructor(options: ProcessClientOptions) {
    this.#onMemoryWait = options.onMemoryWait
    this.#onWarning = options.onWarning
    this.#onEnd = options.onEnd
    this.#onCacheEvict = options.onCacheEvict
    this.ready = new Promise((resolve, reject) => {
      this.#readySettlers = { resolve, reject }
    })
    this.ready.catch(() => {}) // Each caller handles the error.
    this.#exited = new Promise((resolve) => {
      this.#resolveExited = resolve
    })
    this.#connection = new ProcessConnection(options, {
      onConnect: () => {
        this.#onBusy(stallLimits.load)
        this.#connection.send({ type: 'ping' })
        if (this.#loadWatchers.size > 0) this.#connection.send({ type: 'watchLoad' })
      },
      onRefused: () => this.#watchdog.stop(),
      onMessage: (message) => this.#onMessage(message),
      onClose: () => this.#onClose(),
      onExit: (exitStatus, cause) => this.#onExit(exitStatus, cause),
    })
    this.#watchdog = new Watchdog(
      () => this.#connection.send({ type: 'ping' }),
      (reason) => {
        this.#isStuck = true
        this.#kill(reason)
      },
    )
    this.#connection.attach().catch((error: unknown) => this.#onExit('', LlmError.from(error)))
  }

  get id(): number | undefined {
    return this.#connection.processId
  }

  /** Absent until the model is loaded. */
  get footprint(): Footprint | undefined {
    return this.#footprint
  }

  /** Whether the load had to wait for memory and is still incomplete. */
  get isWaitingForMemory(): boolean {
    return this.#hasWaited && !this.#footprint
  }

  /** Absent until the first report after the load. */
  get activity(): ModelActivity | undefined {
    return this.#activity
  }

  /** When the process has last sent output of a call, on the clock of `performance.now()`. */
  get lastTokenAt(): number {
    return this.#lastTokenAt
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /**
   * Whether the process ended by its own fault, such as a failed assertion. External kills and kills by the
   * watchdog do not count.
   */
  get hasCrashed(): boolean {
    return this.#hasCrashed
  }

  /** Whether the process was killed because it did not answer or made no progress. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /**
   * Waits for `ready`, and reports the loaded part of the weights meanwhile. Reports nothing when the model is loaded.
   * @param onProgress called with numbers from 0 to 1. The last one is 1
   */
  async watchLoad(onProgress: (fraction: number) => void): Promise<Footprint> {
    if (this.#footprint) return this.#footprint
    onProgress(this.#loadedFraction)
    this.#loadWatchers.add(onProgress)
    if (this.#loadWatchers.size === 1) this.#connection.send({ type: 'watchLoad' })
    try {
      const footprint = await this.ready
      onProgress(1)
      return footprint
    } finally {
      this.#loadWatchers.delete(onProgress)
    }
  }

  /** Resolves when the process has answered, which a process that hangs never does. Rejects when it has ended. */
  ping(): Promise<void> {
    if (this.#hasEnded) return Promise.reject(this.#createExitError(''))
    this.#connection.send({ type: 'ping' })
    return new Promise((resolve, reject) => this.#pings.add({ resolve, reject }))
  }

  /**
   * Resolves when the call has ended or was aborted. Throws `LlmError`.
   * @param onStart called with a function that reports consumed tokens
   */
  async generate(
    request: GenerateRequest,
    call: ProcessCall,
    push: (event: GenerateEvent) => void,
    onStart: (reportConsumed: (tokens: number) => void) => void = () => {},
  ): Promise<void> {
    await this.#runCall('generate', request, call, { push, result: () => {} }, (id) =>
      onStart(
        createConsumptionReporter(readAheadTokens, (tokens) => {
          if (this.#calls.has(id)) this.#connection.send({ type: 'consumed', id, tokens })
        }),
      ),
    )
  }

  /**
   * Resolves with the id of the call when all results have arrived. After an abort, some are missing. Throws
   * `LlmError`.
   */
  request(
    type: Exclude<CallType, 'generate' | 'forget'>,
    request: object,
    call: EngineCall,
    result: (value: CallResult) => void,
  ): Promise<number> {
    return this.#runCall(type, request, call, { push: () => {}, result })
  }

  /** Deletes the KV states of a tenant, and returns their number. Throws `LlmError`. */
  async deletePromptStates(tenant: string): Promise<number> {
    let count = 0
    const { signal } = new AbortController()
    await this.#runCall(
      'forget',
      {},
      { signal, tenant },
      {
        push: () => {},
        result: (value) => {
          count = value as number
        },
      },
    )
    return count
  }

  /**
   * Ends running calls with an error. Resolves when the connection has closed. A process without other
   * connections has then ended, too.
   *
   * @param isEvicted whether another model needs the place of this one
   */
  async release(isEvicted = false): Promise<void> {
    if (this.#hasEnded) return
    this.#exitReason ??= isEvicted ? placeNeededReason : 'it is no longer needed'
    // A process without clients exits on its own.
    if (!this.#connection.isJoined) this.#onExit()
    this.#connection.send({ type: 'release' })
    const timer = setTimeout(() => this.#kill('it did not release the model in time'), releaseTimeoutMs)
    await this.#exited
    clearTimeout(timer)
  }

  /**
   * Ends running calls with an error. The process keeps serving its other clients, and ends some time after
   * the last one.
   */
  close(): void {
    this.#exitReason ??= engineClosedReason
    this.#onExit()
  }

  async #runCall(
    type: CallType,
    request: object,
    { signal, tenant = '', weight = 1, background = false, countedBy }: ProcessCall,
    handlers: Pick<PendingCall, 'push' | 'result'>,
    onStart: (id: number) => void = () => {},
  ): Promise<number> {
    const { stepMs } = await this.ready
    if (this.#hasEnded) throw this.#createExitError('')
    const id = ++this.#lastId
    const cancel = (): void => this.#connection.send({ type: 'cancel', id })
    try {
      await new Promise<void>((resolve, reject) => {
        this.#calls.set(id, { ...handlers, finish: (error) => (error ? reject(error) : resolve()) })
        this.#onBusy(stallLimits.call(stepMs))
        this.#connection.send({
          ...{ type, id, request, tenant, weight, background },
          ...(type === 'generate' && { readAheadTokens }),
          ...(countedBy !== undefined && { countedBy }),
        })
        onStart(id)
        signal.addEventListener('abort', cancel, { once: true })
        if (signal.aborted) cancel()
      })
      return id
    } finally {
      signal.removeEventListener('abort', cancel)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#onIdle()
    }
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
      case 'loading':
        // After the weights, the context is created.
        this.#loadedFraction = message.fraction * weightsPart
        for (const onProgress of this.#loadWatchers) onProgress(this.#loadedFraction)
        break
      case 'waiting':
        this.#hasWaited = true
        this.#onMemoryWait()
        break
      case 'events':
        if (message.events.some(({ event }) => isOutput(event.type))) this.#lastTokenAt = performance.now()
        for (const { id, event } of message.events) this.#calls.get(id)?.push(event)
        break
      case 'result':
        // A vector or a score. Other results need only the tokenizer.
        if (typeof message.value === 'object' && 'vector' in message.value)
          this.#lastTokenAt = performance.now()
        this.#calls.get(message.id)?.result(message.value)
        break
      case 'done':
        this.#calls.get(message.id)?.finish(message.error && fromWireError(message.error))
        break
      case 'warning':
        this.#onWarning(message.text)
        break
      case 'leaving':
        this.#exitReason ??= memoryNeededReason
        break
      case 'pong':
        this.#watchdog.onPong(message.steps)
        if (message.activity) this.#onActivity(message.activity)
        for (const { resolve } of this.#pings) resolve()
        this.#pings.clear()
    }
  }

  #onActivity({ evicted, ...activity }: ProcessActivity): void {
    const before = this.#evicted ?? evicted
    this.#evicted = evicted
    this.#activity = { ...activity, reportedAt: new Date() }
    for (const reason of ['expired', 'memory', 'deleted'] as const) {
      const states = evicted[reason].states - before[reason].states
      if (states > 0)
        this.#onCacheEvict({ reason, states, bytes: evicted[reason].bytes - before[reason].bytes })
    }
  }

  /** Watches the process for progress. Meanwhile, the connection keeps the host app running. */
  #onBusy(maxStalledTicks: number): void {
    this.#connection.setRef(true)
    this.#watchdog.start(maxStalledTicks)
  }

  #onIdle(): void {
    this.#connection.setRef(false)
    this.#watchdog.pause()
  }

  #kill(reason: string): void {
    if (this.#connection.isJoined) this.#exitReason ??= reason
    this.#connection.kill()
  }

  #onClose(): void {
    if (this.#connection.isOwnProcess && !this.#exitReason)
      setTimeout(() => this.#kill(connectionBrokeReason), exitGraceMs).unref()
    else this.#onExit()
  }

  /** @param exitStatus signal or exit code, if known */
  #onExit(exitStatus: string | number = '', cause = this.#createExitError(exitStatus)): void {
    if (this.#hasEnded) return
    const hasFailed = this.#connection.isJoined && !this.#exitReason
    this.#hasCrashed =
      hasFailed &&
      (exitStatus === '' ? this.#connection.readLogTail() !== '' : !externalSignals.has(exitStatus))
    this.#hasEnded = true
    this.#watchdog.stop()
    this.#connection.close()
    this.#readySettlers?.reject(cause)
    for (const { finish } of this.#calls.values()) finish(cause)
    for (const { reject } of this.#pings) reject(cause)
    this.#pings.clear()
    this.#onEnd(this.#endType(), this.#exitReason)
    this.#resolveExited()
  }

  #endType(): ModelEnd['type'] {
    if (this.#exitReason === memoryNeededReason || this.#exitReason === placeNeededReason) return 'evict'
    const isExpected = this.#exitReason && this.#exitReason !== connectionBrokeReason && !this.#isStuck
    return isExpected ? 'unload' : 'crash'
  }

  #createExitError(exitStatus: string | number): LlmError {
    const status = typeof exitStatus === 'number' ? `exit code ${exitStatus}` : exitStatus
    const why = this.#exitReason
      ? `, because ${this.#exitReason}`
      : ` unexpectedly (${status || 'connection lost'})`
    const code = this.#exitReason === engineClosedReason ? 'overloaded' : 'upstream'
    const cause = new Error(`${status}\n${this.#connection.readLogTail()}`)
    return new LlmError(code, `The model process has ended${why}.`, { processEnded: true }, { cause })
  }
}

/** Signals with which the user, the system or its out-of-memory killer ends a process. */
const externalSignals: ReadonlySet<string | number> = new Set(['SIGKILL', 'SIGTERM'])
