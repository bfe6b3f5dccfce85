/** `modelmount serve`: the Express adapter in a small app. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { type AdaptedModel, type ByteSize, createLlm, type Llm, type LocalOptions } from '@modelmount/core'
import { adminRouter, llmRouter } from '@modelmount/express'
import express, { type Express } from 'express'
import { databaseIn } from './database.ts'
import { isLoopback, withBrackets } from './host.ts'
import { occupantOf } from './occupant.ts'
import { complain } from './output.ts'
import { readPrices } from './prices.ts'

export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly models?: string
  readonly model?: string
  /** Of this model. */
  readonly adapter?: AdaptedModel['adapters']
  readonly threads?: number
  readonly context?: number
  readonly maxContext?: number
  readonly parallel?: number
  readonly maxLoaded?: number
  readonly gpuLayers?: LocalOptions['gpuLayers']
  readonly flashAttention?: boolean
  readonly kvType?: LocalOptions['kvCacheType']
  readonly keepAlive?: LocalOptions['keepAlive']
  /** False lets everybody in; `keys` those who have one. */
  readonly auth?: 'keys' | boolean
  /** Whether keys can be managed over HTTP. */
  readonly admin?: boolean
  /** A folder. */
  readonly data?: string
  readonly registry?: readonly string[]
  readonly privateRegistry?: readonly string[]
  readonly storeMax?: ByteSize
  /** A file. */
  readonly prices?: string
}

/** So long running answers may take to end after SIGTERM or Ctrl-C. */
const drainMs = 10_000

export async function serve(options: ServeOptions): Promise<void> {
  const { host, port, models, auth = true, admin = false } = options
  const sources = [modelOf(options), models].filter((source) => source !== undefined)
  const open = !isLoopback(host) && auth !== 'keys'
  if (open && auth)
    fail(
      `${host} can be reached by others. Say --auth keys to ask for keys, or --no-auth to let everybody in.`,
    )
  const isKept = auth === 'keys' || options.prices !== undefined
  if (isKept && options.data === undefined && models === undefined && options.model !== undefined)
    fail('Keys and usage are kept in a folder, and --model names none. Say --data FOLDER, too.')
  if (admin && auth !== 'keys') fail('--admin is for keys with the scope admin. Say --auth keys, too.')
  const llm = await createLlm({
    // Who can log in here may change what lies here; who comes from elsewhere may only ask.
    ...(open ? { auth: 'host', origins: [] } : { scopes: ['inference', 'models'] }),
    ...(auth === 'keys' && { auth }),
    ...(options.data !== undefined && { database: databaseIn(options.data) }),
    ...(sources.length > 0 && { models: sources }),
    local: {
      threads: options.threads,
      contextSize: options.context,
      maxContextSize: options.maxContext,
      parallel: options.parallel,
      maxLoadedModels: options.maxLoaded,
      gpuLayers: options.gpuLayers,
      flashAttention: options.flashAttention,
      kvCacheType: options.kvType,
      keepAlive: options.keepAlive,
    },
    store: {
      registries: options.registry,
      privateRegistries: options.privateRegistry,
      maxBytes: options.storeMax,
    },
    ...(options.prices !== undefined && { prices: readPrices(options.prices) }),
    logger: { warn: complain, error: complain },
  })
  const app = express().disable('x-powered-by')
  if (admin) app.use('/admin', adminRouter(llm))
  app.use(llmRouter(llm, { unknownRoutes: 'error', ...(open && { authenticate: () => ({ id: 'anyone' }) }) }))
  const server = await listen(app, host, port)

  const { port: bound } = server.address() as AddressInfo
  print(`Listening on ${urlOf(host, bound)}`)
  if (open) print(`Warning: ${host} can be reached by others, and nobody is asked for a key.`)
  drainAtSignals(server, llm)
  await noteMissing(llm, models)
}

/** Under the name of its file, whatever is added to it. */
function modelOf({ model, adapter: adapters }: ServeOptions): string | AdaptedModel | undefined {
  if (!adapters) return model
  if (model === undefined) fail('--adapter is for the model of --model, and none is named.')
  return { name: basename(model, '.gguf'), file: model, adapters }
}

async function listen(app: Express, host: string, port: number): Promise<Server> {
  const server = app.listen(port, host)
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    const occupant = await occupantOf(urlOf(host, port))
    return fail(
      `Port ${port} on ${host} is taken by ${occupant}. Stop it, or choose another port: --port ${port < 65_535 ? port + 1 : port - 1}`,
    )
  }
}

/** A list that holds less than one would think is worth a line. */
async function noteMissing(llm: Llm, folder: string | undefined): Promise<void> {
  const models = await llm.models.list()
  if (models.length === 0) print('Warning: there is no model. Put a GGUF file into the folder of models.')
  else if (folder !== undefined && models.every(({ isBuiltIn }) => isBuiltIn))
    print(`Warning: there is no GGUF file in ${folder}.`)
}

function drainAtSignals(server: Server, llm: Llm): void {
  const drain = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    // A kept-alive connection becomes idle when its last answer ends, and would wait for another call.
    const sweep = setInterval(() => server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => server.closeAllConnections(), drainMs)
    await closed
    clearInterval(sweep)
    clearTimeout(deadline)
    await llm.close()
  }
  let draining = false
  const stop = (signal: NodeJS.Signals): void => {
    // A second Ctrl-C does not wait.
    if (draining && signal === 'SIGINT') process.exit(130)
    if (!draining) void drain()
    draining = true
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
}

const urlOf = (host: string, port: number): string => `http://${withBrackets(host)}:${port}`

const print = (line: string): boolean => process.stdout.write(`${line}\n`)

function fail(message: string): never {
  throw new Error(message)
}
