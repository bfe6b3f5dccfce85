/** A model process: loads one model, listens on a private socket, leaves with its last client. */
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { GenerateEvent } from '../../events.ts'
import { receive, send } from '../framing.ts'
import { type FromProcess, ProcessConfig, readRequest, ToProcess, toWire } from '../protocol.ts'
import { answer, type Work } from './answer.ts'
import type { Progress } from './binding.ts'
import { countTokens, promptText } from './prompt.ts'
import { PromptRenderer } from './render.ts'
import type { Runner } from './scheduler.ts'

/** So long a process waits for its first client; one that never comes must not leave an orphan. */
const firstClientMs = 30_000
/** So long the native code gets to finish its step at the end. */
const lastStepMs = 5_000

const config = ProcessConfig.parse(JSON.parse(process.argv[2] ?? 'null'))
const progress: Progress = { steps: 0 }
const clients = new Set<Socket>()
let runner: Runner | undefined

// Ctrl-C is the app's affair: it drains, and then we leave with it.
process.on('SIGINT', () => {})

const server = createServer(serve).listen(config.address)
const leaveTimer = setTimeout(leave, firstClientMs)
// Loaded behind the socket, so that the app has something to ask meanwhile.
const renderer = new PromptRenderer()
const loading = import('./binding.ts').then(({ loadModel }) => loadModel(config, progress))
loading.then(
  (model) => {
    runner = model.runner
  },
  () => {}, // Every client is told.
)

function serve(socket: Socket): void {
  const calls = new Map<number, AbortController>()
  const tell = (message: FromProcess): void => send(socket, message)
  const events = inBundles<{ id: number; event: GenerateEvent }>((bundle) =>
    tell({ type: 'events', events: bundle }),
  )
  clients.add(socket)
  clearTimeout(leaveTimer)

  const run = async (id: number, tenant: string, job: (work: Work) => Promise<void>): Promise<void> => {
    const call = new AbortController()
    calls.set(id, call)
    try {
      const model = await loading
      if (!call.signal.aborted) await job({ model, renderer, progress, tenant, signal: call.signal })
      events.flush()
      tell({ type: 'done', id })
    } catch (error) {
      events.flush()
      tell({ type: 'done', id, error: toWire(error) })
    }
    calls.delete(id)
  }

  receive(socket, (value) => {
    const message = ToProcess.parse(value)
    if (message.type === 'ping') tell({ type: 'pong', steps: progress.steps })
    else if (message.type === 'cancel') calls.get(message.id)?.abort()
    else {
      const { type, id, tenant } = message
      void run(id, tenant, async (work) => {
        const request = readRequest(message.request)
        if (type === 'generate') await answer(request, work, (event) => events.push({ id, event }))
        else
          tell({
            type: 'result',
            id,
            value: await (type === 'count' ? countTokens : promptText)(request, work),
          })
      })
    }
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    clients.delete(socket)
    for (const call of calls.values()) call.abort()
    if (clients.size === 0) leave()
  })
  loading.then(
    ({ contextSize, sizeBytes, gpuBytes, notes }) =>
      tell({ type: 'loaded', contextSize, sizeBytes, gpuBytes, notes }),
    (error: unknown) => tell({ type: 'failed', error: toWire(error) }),
  )
}

/** Not before the running step has ended: native code does not like to lose its process. */
function leave(): void {
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
