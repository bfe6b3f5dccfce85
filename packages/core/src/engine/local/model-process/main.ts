/**
 * A model process: loads one model, listens on a private socket for the apps that use it, and leaves a while
 * after the last of them.
 */
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { GenerateEvent } from '../../events.ts'
import { receive, send } from '../ipc/framing.ts'
import {
  type Asking,
  type FromProcess,
  ProcessConfig,
  type Result,
  readDetokenizeRequest,
  readEmbedRequest,
  readRequest,
  readRerankRequest,
  readTokenizeRequest,
  ToProcess,
  takenExitCode,
  toWire,
} from '../ipc/protocol.ts'
import { tokensIn } from '../ipc/reader-lag.ts'
import { embed, rerank } from './embed.ts'
import { Grammars } from './grammars.ts'
import type { Progress } from './model.ts'
import { countTokens, promptText } from './prompt/prompt.ts'
import { PromptRenderer } from './render.ts'
import { claim } from './resources/claim.ts'
import { Presence, shareOfCores } from './resources/machine-share.ts'
import { answer, type Work } from './run-request.ts'
import type { Runner } from './runner.ts'
import { detokenize, tokenize } from './tokenize-requests.ts'

/** So long a process waits for its first client; one that never comes must not leave an orphan. */
const firstClientMs = 10_000
/** So long it waits for another one: an app that starts anew finds its model loaded. */
const nextClientMs = 5_000
/** So long the native code gets to finish its step at the end. */
const lastStepMs = 5_000

type Call = Pick<Work, 'tenant' | 'background'> & {
  readonly id: number
  readonly readAheadTokens?: number | undefined
}

/** Of one call. */
interface Reader {
  /** Tokens that were said to it. */
  unread: number
}

/** What is asked for beside answers. */
const jobs: Readonly<
  Record<
    Exclude<Asking, 'generate'>,
    (request: unknown, work: Work, say: (result: Result) => void) => Promise<void>
  >
> = {
  count: async (request, work, say) => say(await countTokens(readRequest(request), work)),
  render: async (request, work, say) => say(await promptText(readRequest(request), work)),
  embed: async (request, work, say) => embed(readEmbedRequest(request), work, say),
  rerank: async (request, work, say) => rerank(readRerankRequest(request), work, say),
  tokenize: async (request, work, say) => tokenize(readTokenizeRequest(request), work, say),
  detokenize: async (request, work, say) => detokenize(readDetokenizeRequest(request), work, say),
}

const config = ProcessConfig.parse(JSON.parse(process.argv[2] ?? 'null'))
const presence = new Presence(config)
const progress: Progress = { steps: 0 }
const clients = new Set<Socket>()
let runner: Runner | undefined
let isLeaving = false
let isWaiting = false

// Ctrl-C is the app's affair: it drains, and then we leave with it.
process.on('SIGINT', () => {})

const renderer = new PromptRenderer()
const grammars = new Grammars()
const server = createServer(serve)
let leaving = setTimeout(leave, firstClientMs)
// Behind the socket, so that apps have something to ask meanwhile.
const loading = claim(config, server, presence.record).then(async (isFirst) => {
  if (!isFirst) process.exit(takenExitCode)
  const { loadModel } = await import('./llama/load.ts')
  return loadModel(config, progress, undefined, { roomFor: (bytes) => presence.roomFor(bytes), waitForRoom })
})
loading.then(
  (model) => {
    runner = model.runner
    presence.onLoaded(model.sizeBytes - model.gpuBytes, model.mappedBytes)
    presence.watchBusy((busy) => model.limitThreads(shareOfCores(busy)))
  },
  () => {}, // Every client is told, also one that comes only now, and lets go of it.
)

function serve(socket: Socket): void {
  const calls = new Map<number, AbortController>()
  const readers = new Map<number, Reader>()
  const tell = (message: FromProcess): void => send(socket, message)
  const events = inBundles<{ id: number; event: GenerateEvent }>((bundle) =>
    tell({ type: 'events', events: bundle }),
  )
  clients.add(socket)
  clearTimeout(leaving)

  const run = async (
    { id, tenant, background, readAheadTokens = Number.POSITIVE_INFINITY }: Call,
    job: (work: Work) => Promise<void>,
  ): Promise<void> => {
    const call = new AbortController()
    const reader = { unread: 0 }
    readers.set(id, reader)
    const isAhead = (): boolean => reader.unread >= readAheadTokens
    calls.set(id, call)
    presence.onCall()
    try {
      const model = await loading
      if (!call.signal.aborted)
        await job({ model, renderer, grammars, progress, tenant, background, signal: call.signal, isAhead })
      events.flush()
      tell({ type: 'done', id })
    } catch (error) {
      events.flush()
      tell({ type: 'done', id, error: toWire(error) })
    }
    progress.steps++
    calls.delete(id)
    readers.delete(id)
    presence.onCallEnd()
  }

  receive(socket, (value) => {
    const message = ToProcess.parse(value)
    switch (message.type) {
      case 'ping':
        tell({ type: 'pong', steps: progress.steps })
        break
      case 'cancel':
        calls.get(message.id)?.abort()
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
        for (const call of calls.values()) call.abort()
        runner?.wake()
        if (clients.size === 0) leave()
        else socket.destroy()
        break
      case 'yield':
        if (presence.isBusy) socket.destroy()
        else makeRoom()
        break
      default: {
        // Whoever asked too late asks another process.
        if (isLeaving) return
        const { type, id } = message
        void run(message, async (work) => {
          const { request } = message
          if (type === 'generate')
            await answer(readRequest(request), work, (event) => {
              const reader = readers.get(id)
              if (reader) reader.unread += tokensIn(event)
              events.push({ id, event })
            })
          else await jobs[type](request, work, (value) => tell({ type: 'result', id, value }))
        })
      }
    }
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    for (const call of calls.values()) call.abort()
    runner?.wake()
    if (clients.delete(socket) && clients.size === 0) leaving = setTimeout(leave, nextClientMs)
  })
  if (isWaiting) tell({ type: 'waiting' })
  loading.then(
    ({ contextSize, sizeBytes, gpuBytes, stepMs, notes }) =>
      tell({ type: 'loaded', contextSize, sizeBytes, gpuBytes, stepMs, notes }),
    (error: unknown) => tell({ type: 'failed', error: toWire(error) }),
  )
}

function tellAll(message: FromProcess): void {
  for (const client of clients) send(client, message)
}

function waitForRoom(): Promise<boolean> {
  if (!isWaiting) tellAll({ type: 'waiting' })
  isWaiting = true
  return presence.waitForRoom()
}

/** For another model; to the apps it is no failure. */
function makeRoom(): void {
  tellAll({ type: 'leaving' })
  leave()
}

/** Not before the running step has ended: native code does not like to lose its process. */
function leave(): void {
  if (isLeaving) return
  isLeaving = true
  clearTimeout(leaving)
  presence.end()
  server.close()
  const exit = (): void => {
    rmSync(config.folder, { recursive: true, force: true })
    process.exit(0)
  }
  setTimeout(exit, lastStepMs)
  void (runner?.rest() ?? Promise.resolve()).then(exit)
}

/** What comes in the same turn goes together. */
function inBundles<T>(send: (bundle: T[]) => void) {
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
