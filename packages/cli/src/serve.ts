/** `modelmount serve`: the Express adapter in a small app. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import {
  type AdaptedModel,
  type ByteSize,
  type Caller,
  createLlm,
  type Llm,
  type LlmOptions,
  type LocalOptions,
} from '@modelmount/core'
import { addressKey } from '@modelmount/core/limits'
import { adminRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { databaseIn, modelsFolder } from './database.ts'
import { nameFlags, withFlags } from './flags.ts'
import { isLoopback, withBrackets } from './host.ts'
import { occupantOf } from './occupant.ts'
import { logToStderr } from './output.ts'
import { readPrices } from './prices.ts'

export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly models?: string
  readonly model?: string
  /** LoRA adapters of `model`. */
  readonly adapter?: AdaptedModel['adapters']
  readonly threads?: number
  readonly context?: number
  readonly maxContext?: number
  readonly parallel?: number
  readonly maxLoaded?: number
  readonly maxQueued?: number
  readonly queueTimeout?: LlmOptions['queueTimeout']
  readonly gpuLayers?: LocalOptions['gpuLayers']
  readonly flashAttention?: boolean
  readonly kvType?: LocalOptions['kvCacheType']
  readonly keepAlive?: LocalOptions['keepAlive']
  readonly reloadCooldown?: LocalOptions['reloadCooldown']
  /**
   * `true` serves callers on this machine only. `keys` requires an API key. `false` serves other machines
   * without authentication.
   *
   * @default true
   */
  readonly auth?: 'keys' | boolean
  /** Whether to serve the admin API under `/admin`. */
  readonly admin?: boolean
  /** The folder with `modelmount.db`. */
  readonly data?: string
  /** Names of environment variables that model processes inherit. */
  readonly passEnv?: readonly string[]
  readonly registry?: readonly string[]
  readonly privateRegistry?: readonly string[]
  readonly storeMax?: ByteSize
  /** Path of a JSON file. */
  readonly prices?: string
}

/** How long running answers may take to end after SIGTERM or Ctrl-C. */
const drainMs = 10_000

export async function serve(options: ServeOptions): Promise<void> {
  const { host, port, models, auth = true, admin = false } = options
  const sources = [modelOf(options), models].filter((source) => source !== undefined)
  const open = !isLoopback(host) && auth !== 'keys'
  if (open && auth)
    fail(
      `Other machines can reach ${host}. Add --auth keys to require an API key, or --no-auth to serve everyone.`,
    )
  const needsDatabase = auth === 'keys' || options.prices !== undefined
  if (needsDatabase && options.data === undefined && models === undefined && options.model !== undefined)
    fail('Keys and usage need a folder, and --model has none. Add --data FOLDER.')
  if (admin && auth !== 'keys') fail('--admin requires API keys. Add --auth keys.')
  const batchDatabase = batchDatabaseOf(options)
  const llm = await createLlm({
    // If other machines need no API key, all callers may only use models. If only this machine is served, its
    // callers may also add and delete models. API keys have their own scopes.
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
      reloadCooldown: options.reloadCooldown,
      environment: options.passEnv,
    },
    maxQueued: options.maxQueued,
    queueTimeout: options.queueTimeout,
    store: {
      registries: options.registry,
      privateRegistries: options.privateRegistry,
      maxBytes: options.storeMax,
    },
    ...(options.prices !== undefined && { prices: readPrices(options.prices) }),
    ...(batchDatabase !== undefined && { batches: { database: batchDatabase } }),
    logger: { warn: logWithFlags, error: logWithFlags },
  }).catch(nameFlags)
  const app = express().disable('x-powered-by')
  if (admin) app.use('/admin', adminRouter(llm))
  app.use(llmRouter(llm, { unknownRoutes: 'error', ...(open && { authenticate: callerAt }) }))
  const server = await listen(app, host, port)

  const { port: bound } = server.address() as AddressInfo
  print(`Listening on ${urlOf(host, bound)}`)
  if (open) print(`Warning: other machines can reach ${host}, and no API key is required.`)
  drainAtSignals(server, llm)
  await warnWithoutModels(llm, models)
}

/**
 * Returns the file for batches of a server without another database. The server creates it with the first batch.
 * Returns undefined if the server has another database, or no folder.
 */
function batchDatabaseOf({ data, auth, prices, model, models }: ServeOptions): string | undefined {
  if (data !== undefined || auth === 'keys' || prices !== undefined) return undefined
  const folder = models ?? (model === undefined ? modelsFolder() : undefined)
  return folder === undefined ? undefined : databaseIn(folder)
}

const logWithFlags = (details: object, message: string): void => logToStderr(details, withFlags(message))

/** The caller without an API key. Each client address is a tenant, so that no client takes the share of others. */
export const callerAt = ({ ip }: Pick<express.Request, 'ip'>): Caller => ({
  id: 'anyone',
  tenant: addressKey(ip),
})

/** Returns the model to serve. With LoRA adapters, the model still has the name of its file. */
function modelOf({ model, adapter: adapters }: ServeOptions): string | AdaptedModel | undefined {
  if (!adapters) return model
  if (model === undefined) fail('--adapter requires --model FILE.')
  return { name: basename(model, '.gguf'), file: model, adapters }
}

/**
 * Resolves when the server listens. Rejects with an error that names the program which uses the port.
 *
 * The server sets no time limit for whole requests, because an upload may take hours. The routes limit the
 * pauses of a body instead. An idle connection stays open for longer than the 60 s for which most balancers use
 * it again.
 */
export async function listen(app: RequestListener, host: string, port: number): Promise<Server> {
  const server = createServer(
    { requestTimeout: 0, keepAliveTimeout: 65_000, headersTimeout: 66_000 },
    app,
  ).listen(port, host)
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    const occupant = await occupantOf(urlOf(host, port))
    return fail(
      `Port ${port} on ${host} is in use by ${occupant}. Stop it, or choose another port: --port ${port < 65_535 ? port + 1 : port - 1}`,
    )
  }
}

async function warnWithoutModels(llm: Llm, folder: string | undefined): Promise<void> {
  const models = await llm.models.list()
  if (models.length === 0) print('Warning: no model found. Put a GGUF file into the folder of models.')
  else if (folder !== undefined && models.every(({ isBuiltIn }) => isBuiltIn))
    print(`Warning: no GGUF file found in ${folder}.`)
}

function drainAtSignals(server: Server, llm: Llm): void {
  const drain = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    // A keep-alive connection becomes idle when its last answer ends, and would then stay open.
    const sweep = setInterval(() => server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => server.closeAllConnections(), drainMs)
    await closed
    clearInterval(sweep)
    clearTimeout(deadline)
    await llm.close()
  }
  let draining = false
  const stop = (signal: NodeJS.Signals): void => {
    // A second Ctrl-C exits at once.
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
