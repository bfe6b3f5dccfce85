import type { Socket } from 'node:net'
import type { GenerateEvent } from '../../events.ts'
import {
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
} from '../../wire/parse-request.ts'
import { toWireError } from '../../wire/wire-error.ts'
import { receive, send } from '../ipc/framing.ts'
import {
  type CallResult,
  type CallType,
  type FromProcess,
  type ProcessActivity,
  ToProcess,
} from '../ipc/messages.ts'
import { ReaderLag } from '../ipc/reader-lag.ts'
import { embed, rerank } from './embed.ts'
import type { RuntimeModel } from './model.ts'
import { countCachedTokens } from './prompt/breakpoints.ts'
import { CountedPrompts } from './prompt/counted-prompts.ts'
import { countTokens, renderPrompt } from './prompt/prompt.ts'
import { detokenize, tokenize, tokenPieces } from './prompt/tokenize-requests.ts'
import type { RunContext } from './run-context.ts'
import { runRequest } from './run-request.ts'
import { CpuBudget, type TenantCpu } from './workers/cpu-budget.ts'

/** The model process, as its client connections use it. */
export interface ConnectionHost extends Pick<RunContext, 'renderer' | 'grammars' | 'progress'> {
  readonly tenantCpu: TenantCpu
  /** Rejects when the model cannot be loaded. */
  readonly model: Promise<RuntimeModel>
  readonly isShuttingDown: boolean
  /** Undefined until the model is loaded. */
  readonly activity: ProcessActivity | undefined
  onCall(): void
  onCallEnd(): void
  /** Resumes decoding after a client has cancelled a call, disconnected or read more output. */
  wake(): void
  /** Disconnects a client that no longer needs the model. Ends the process if no client is left. */
  release(client: ClientConnection): void
  /**
   * Called on the first message of an app. Other processes connect without a message, only to check that this
   * process runs, or to ask it to end.
   */
  onJoin(client: ClientConnection): void
  onClose(client: ClientConnection): void
  /** Sends the progress of the load to a client. */
  watchLoad(client: ClientConnection): void
  /** Ends the process to free memory for another model. Returns `false` if the process is busy. */
  yieldMemory(): boolean
}

type CallMessage = Extract<ToProcess, { readonly type: CallType }>

interface OpenCall {
  readonly controller: AbortController
  readonly lag: ReaderLag
}

const handlers: Readonly<
  Record<
    Exclude<CallType, 'generate'>,
    (request: unknown, context: RunContext, emit: (result: CallResult) => void) => Promise<void>
  >
> = {
  count: async (request, context, emit) => emit(await countTokens(parseGenerateRequest(request), context)),
  'count-cached': async (request, context, emit) =>
    emit(await countCachedTokens(parseGenerateRequest(request), context)),
  render: async (request, context, emit) => emit(await renderPrompt(parseGenerateRequest(request), context)),
  embed: async (request, context, emit) => embed(parseEmbedRequest(request), context, emit),
  rerank: async (request, context, emit) => rerank(parseRerankRequest(request), context, emit),
  tokenize: async (request, context, emit) => tokenize(parseTokenizeRequest(request), context, emit),
  detokenize: async (request, context, emit) => detokenize(parseDetokenizeRequest(request), context, emit),
  pieces: async (request, context, emit) => tokenPieces(parseDetokenizeRequest(request), context, emit),
  forget: async (_, { model, tenant }, emit) => emit(await model.runner.deleteStates(tenant)),
}

/** Connection of one app: runs the calls of this app and sends it their events. */
export class ClientConnection {
  readonly #socket: Socket
  readonly #host: ConnectionHost
  readonly #calls = new Map<number, OpenCall>()
  readonly #countedPrompts = new CountedPrompts()
  readonly #events: EventBundler
  #isJoined = false

  constructor(socket: Socket, host: ConnectionHost) {
    this.#socket = socket
    this.#host = host
    this.#events = new EventBundler((events) => this.send({ type: 'events', events }))
    receive(socket, (message) => this.#onMessage(ToProcess.parse(message)))
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#abortCalls()
      host.onClose(this)
    })
  }

  send(message: FromProcess): void {
    send(this.#socket, message)
  }

  close(): void {
    this.#socket.destroy()
  }

  #onMessage(message: ToProcess): void {
    if (!this.#isJoined && message.type !== 'yield') {
      this.#isJoined = true
      this.#host.onJoin(this)
    }
    switch (message.type) {
      case 'ping':
        this.send({ type: 'pong', steps: this.#host.progress.steps, activity: this.#host.activity })
        break
      case 'watchLoad':
        this.#host.watchLoad(this)
        break
      case 'cancel':
        this.#calls.get(message.id)?.controller.abort()
        this.#host.wake()
        break
      case 'consumed':
        this.#calls.get(message.id)?.lag.onConsumed(message.tokens)
        this.#host.wake()
        break
      case 'release':
        this.#abortCalls()
        this.#host.release(this)
        break
      case 'yield':
        if (!this.#host.yieldMemory()) this.close()
        break
      default:
        // During shutdown, calls get no reply. Their client then starts another process.
        if (!this.#host.isShuttingDown) void this.#run(message)
    }
  }

  async #run(message: CallMessage): Promise<void> {
    const { id, readAheadTokens } = message
    const { progress } = this.#host
    const call: OpenCall = { controller: new AbortController(), lag: new ReaderLag(readAheadTokens) }
    this.#calls.set(id, call)
    this.#host.onCall()
    try {
      await this.#handle(message, call)
      this.#events.flush()
      this.send({ type: 'done', id })
    } catch (error) {
      this.#events.flush()
      this.send({ type: 'done', id, error: toWireError(error) })
    }
    progress.steps++
    this.#calls.delete(id)
    this.#host.onCallEnd()
  }

  async #handle(message: CallMessage, call: OpenCall): Promise<void> {
    const { type, id, request, tenant, weight, background, countedBy } = message
    const { model, renderer, grammars, progress, tenantCpu } = this.#host
    const { signal } = call.controller
    const context: RunContext = {
      model: await model,
      renderer,
      grammars,
      progress,
      budget: new CpuBudget(tenantCpu, { tenant, weight, background, signal }),
      tenant,
      weight,
      background,
      signal,
      countedPrompt: countedBy === undefined ? undefined : this.#countedPrompts.take(countedBy),
      keepCounted: (tokens) => this.#countedPrompts.add(id, tokens),
      isBackpressured: (now) => call.lag.isBackpressured(now),
    }
    if (signal.aborted) return
    if (type !== 'generate')
      return handlers[type](request, context, (value) => this.send({ type: 'result', id, value }))
    await runRequest(parseGenerateRequest(request), context, (event) => {
      call.lag.onSent(event)
      this.#events.push({ id, event })
    })
  }

  #abortCalls(): void {
    for (const { controller } of this.#calls.values()) controller.abort()
    this.#host.wake()
  }
}

interface CallEvent {
  readonly id: number
  readonly event: GenerateEvent
}

/** Sends the events of one turn of the event loop in one message. */
class EventBundler {
  readonly #send: (events: readonly CallEvent[]) => void
  #events: CallEvent[] = []

  constructor(send: (events: readonly CallEvent[]) => void) {
    this.#send = send
  }

  push(event: CallEvent): void {
    if (this.#events.push(event) === 1) queueMicrotask(() => this.flush())
  }

  flush(): void {
    if (this.#events.length > 0) this.#send(this.#events)
    this.#events = []
  }
}
