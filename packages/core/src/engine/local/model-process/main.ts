/**
 * A model process: loads one model, listens on a private socket for the apps that use it, and leaves a while
 * after the last of them.
 */
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { GenerateEvent } from '../../events.ts'
import { receive, send } from '../ipc/framing.ts'
import {
  type CallResult,
  type CallType,
  type FromProcess,
  nameTakenExitCode,
  ProcessConfig,
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
  ToProcess,
  toWireError,
} from '../ipc/protocol.ts'
import { countEventTokens } from '../ipc/reader-lag.ts'
import { embed, rerank } from './embed.ts'
import { GrammarBuilder } from './grammar-builder.ts'
import type { StepCounter } from './model.ts'
import { countTokens, renderPrompt } from './prompt/prompt.ts'
import { PromptRenderer } from './render.ts'
import { claimName } from './resources/claim.ts'
import { coresPerProcess } from './resources/cores.ts'
import { MachineShare } from './resources/machine-share.ts'
import type { RunContext } from './run-context.ts'
import { runRequest } from './run-request.ts'
import type { Runner } from './runner.ts'
import { detokenize, tokenize } from './tokenize-requests.ts'

/** So long a process waits for its first client; one that never comes must not leave an orphan. */
const firstClientTimeoutMs = 10_000
/** So long it waits for another one: an app that starts anew finds its model loaded. */
const nextClientTimeoutMs = 5_000
/** So long the native code gets to finish its step at the end. */
const lastStepTimeoutMs = 5_000

type IncomingCall = Pick<RunContext, 'tenant' | 'background'> & {
  readonly id: number
  readonly readAheadTokens?: number | undefined
}

/** Of one call. */
interface ClientReader {
  /** Tokens that were said to it. */
  unread: number
}

/** What is asked for beside answers. */
const handlers: Readonly<
  Record<
    Exclude<CallType, 'generate'>,
    (request: unknown, context: RunContext, emit: (result: CallResult) => void) => Promise<void>
  >
> = {
  count: async (request, context, emit) => emit(await countTokens(parseGenerateRequest(request), context)),
  render: async (request, context, emit) => emit(await renderPrompt(parseGenerateRequest(request), context)),
  embed: async (request, context, emit) => embed(parseEmbedRequest(request), context, emit),
  rerank: async (request, context, emit) => rerank(parseRerankRequest(request), context, emit),
  tokenize: async (request, context, emit) => tokenize(parseTokenizeRequest(request), context, emit),
  detokenize: async (request, context, emit) => detokenize(parseDetokenizeRequest(request), context, emit),
}

const config = ProcessConfig.parse(JSON.parse(process.argv[2] ?? 'null'))
const machineShare = new MachineShare(config)
const progress: StepCounter = { steps: 0 }
const clients = new Set<Socket>()
let runner: Runner | undefined
let isShuttingDown = false
let isWaitingForMemory = false

// Ctrl-C is the app's affair: it drains, and then we leave with it.
process.on('SIGINT', () => {})

const renderer = new PromptRenderer()
const grammars = new GrammarBuilder()
const server = createServer(serve)
let leaveTimer = setTimeout(shutDown, firstClientTimeoutMs)
// Behind the socket, so that apps have something to ask meanwhile.
const loading = claimName(config, server, machineShare.record).then(async (isFirst) => {
  if (!isFirst) process.exit(nameTakenExitCode)
  const { loadModel } = await import('./llama/load.ts')
  return loadModel(config, progress, undefined, {
    reserve: (bytes) => machineShare.reserve(bytes),
    waitForMemory,
  })
})
loading.then(
  (model) => {
    runner = model.runner
    machineShare.onLoaded(model.sizeBytes - model.gpuBytes, model.mappedBytes)
    machineShare.watchBusy((busy) => model.limitThreads(coresPerProcess(busy)))
  },
  () => {}, // Every client is told, also one that comes only now, and lets go of it.
)

function serve(socket: Socket): void {
  const abortControllers = new Map<number, AbortController>()
  const readers = new Map<number, ClientReader>()
  const reply = (message: FromProcess): void => send(socket, message)
  const events = createBundler<{ id: number; event: GenerateEvent }>((bundle) =>
    reply({ type: 'events', events: bundle }),
  )
  clients.add(socket)
  clearTimeout(leaveTimer)

  const runCall = async (
    { id, tenant, background, readAheadTokens = Number.POSITIVE_INFINITY }: IncomingCall,
    handle: (context: RunContext) => Promise<void>,
  ): Promise<void> => {
    const controller = new AbortController()
    const reader = { unread: 0 }
    readers.set(id, reader)
    const isBackpressured = (): boolean => reader.unread >= readAheadTokens
    abortControllers.set(id, controller)
    machineShare.onCall()
    try {
      const model = await loading
      if (!controller.signal.aborted)
        await handle({
          model,
          renderer,
          grammars,
          progress,
          tenant,
          background,
          signal: controller.signal,
          isBackpressured,
        })
      events.flush()
      reply({ type: 'done', id })
    } catch (error) {
      events.flush()
      reply({ type: 'done', id, error: toWireError(error) })
    }
    progress.steps++
    abortControllers.delete(id)
    readers.delete(id)
    machineShare.onCallEnd()
  }

  receive(socket, (value) => {
    const message = ToProcess.parse(value)
    switch (message.type) {
      case 'ping':
        reply({ type: 'pong', steps: progress.steps })
        break
      case 'cancel':
        abortControllers.get(message.id)?.abort()
        runner?.wake()
        break
      case 'read': {
        const reader = readers.get(message.id)
        if (reader) reader.unread -= message.tokens
        runner?.wake()
        break
      }
      case 'release':
        clients.delete(socket)
        for (const controller of abortControllers.values()) controller.abort()
        runner?.wake()
        if (clients.size === 0) shutDown()
        else socket.destroy()
        break
      case 'yield':
        if (machineShare.isBusy) socket.destroy()
        else yieldMemory()
        break
      default: {
        // Whoever asked too late asks another process.
        if (isShuttingDown) return
        const { type, id } = message
        void runCall(message, async (context) => {
          const { request } = message
          if (type === 'generate')
            await runRequest(parseGenerateRequest(request), context, (event) => {
              const reader = readers.get(id)
              if (reader) reader.unread += countEventTokens(event)
              events.push({ id, event })
            })
          else await handlers[type](request, context, (value) => reply({ type: 'result', id, value }))
        })
      }
    }
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    for (const controller of abortControllers.values()) controller.abort()
    runner?.wake()
    if (clients.delete(socket) && clients.size === 0) leaveTimer = setTimeout(shutDown, nextClientTimeoutMs)
  })
  if (isWaitingForMemory) reply({ type: 'waiting' })
  loading.then(
    ({ contextSize, sizeBytes, gpuBytes, stepMs, notes }) =>
      reply({ type: 'loaded', contextSize, sizeBytes, gpuBytes, stepMs, notes }),
    (error: unknown) => reply({ type: 'failed', error: toWireError(error) }),
  )
}

function broadcast(message: FromProcess): void {
  for (const client of clients) send(client, message)
}

function waitForMemory(): Promise<boolean> {
  if (!isWaitingForMemory) broadcast({ type: 'waiting' })
  isWaitingForMemory = true
  return machineShare.waitForMemory()
}

/** For another model; to the apps it is no failure. */
function yieldMemory(): void {
  broadcast({ type: 'leaving' })
  shutDown()
}

/** Not before the running step has ended: native code does not like to lose its process. */
function shutDown(): void {
  if (isShuttingDown) return
  isShuttingDown = true
  clearTimeout(leaveTimer)
  machineShare.end()
  server.close()
  const exit = (): void => {
    rmSync(config.folder, { recursive: true, force: true })
    process.exit(0)
  }
  setTimeout(exit, lastStepTimeoutMs)
  void (runner?.whenIdle() ?? Promise.resolve()).then(exit)
}

/** What comes in the same turn goes together. */
function createBundler<T>(send: (bundle: T[]) => void) {
  let bundle: T[] = []
  const flush = (): void => {
    if (bundle.length > 0) send(bundle)
    bundle = []
  }
  const push = (item: T): void => {
    if (bundle.push(item) === 1) queueMicrotask(flush)
  }
  return { push, flush }
}
