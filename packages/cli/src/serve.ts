/** `modelmount serve`: the Express adapter in a small app. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { constants } from 'node:os'
import { type Caller, createLlm, type Llm, type LlmOptions, type Logger } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { addressKey } from '@modelmount/core/limits'
import { activityRoutes } from '@modelmount/core/operations'
import { adminRouter, healthRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { isFromFile, readFiles } from './config/files.ts'
import { rereadAtHangup } from './config/reread.ts'
import type { ServedConsole } from './console.ts'
import { nameFlags, withFlags } from './flags.ts'
import { isLoopback, withBrackets } from './host.ts'
import type { ServedMetrics } from './metrics.ts'
import { occupantOf } from './occupant.ts'
import { findOperator } from './operators.ts'
import { logFieldsToStderr, logToStderr } from './output.ts'
import { isOpen, type ServeOptions, toLlmOptions } from './serve-options.ts'

export async function serve(options: ServeOptions): Promise<void> {
  const { host, port, models, admin = false, drain = 10, metricsPort } = options
  const files = await readFiles(options)
  const llmOptions = toLlmOptions(options, files)
  const logger = llmOptions.accessLog ? accessLogger : quietLogger
  const engines = { ...llmOptions.engines, ...(await upstreamsOf(options)) }
  const llm = await createLlm({ logger, ...llmOptions, engines }).catch((error) =>
    nameFlags(error, options.config, isFromFile(files, options)),
  )
  const open = isOpen(options, files)
  const app = express().disable('x-powered-by')
  app.use(healthRouter(llm, { ...(open && { authenticate: findOperator }) }))
  // Also without the admin API, which needs a database.
  app.get('/admin/activity', activityHandler(llm, open))
  if (admin) app.use('/admin', adminRouter(llm))
  const console = options.console ? await consoleFor(llm, host) : undefined
  if (console) app.use('/console', console.router)
  const metrics = await metricsFor(llm, options, open)
  if (options.metrics && metrics) app.use(metrics.router)
  app.use(
    llmRouter(llm, {
      ...{ unknownRoutes: 'error', cloudRoutes: true, llamaServerRoutes: true },
      ...(open && { authenticate: callerAt }),
    }),
  )
  const servers: Server[] = []
  try {
    servers.push(await listen(app, host, port))
    if (metricsPort !== undefined && metrics)
      servers.push(await listen(metrics.localApp, '127.0.0.1', metricsPort, '--metrics-port'))
  } catch (error) {
    // Not half of the server: it would run on without metrics.
    for (const server of servers) server.close()
    await llm.close()
    throw error
  }
  const [address, metricsAddress] = servers.map((server) => server.address() as AddressInfo)
  // On Windows, this signal says that the console is closed.
  if (process.platform !== 'win32') rereadAtHangup(llm, options, files)

  const url = urlOf(host, address?.port ?? port)
  print(`Listening on ${url}`)
  if (console) print(console.describeLogin(url))
  if (console && llmOptions.auth === 'keys' && llmOptions.prices === undefined) print(noPrices)
  if (metricsAddress) print(`Metrics on ${urlOf('127.0.0.1', metricsAddress.port)}/metrics`)
  if (open) print(`Warning: other machines can reach ${host}, and no API key is required.`)
  closeAtSignals(servers, llm, drain * 1_000)
  await warnWithoutModels(llm, models)
}

/** Loaded on use, because most servers have no upstream. */
async function upstreamsOf({ upstream }: ServeOptions): Promise<LlmOptions['engines']> {
  if (!upstream) return undefined
  const { openUpstreams } = await import('./upstreams.ts')
  return openUpstreams(upstream, process.env)
}

/** Loaded on use, because few servers have metrics. */
async function metricsFor(
  llm: Llm,
  { metrics, metricsPort }: ServeOptions,
  open: boolean,
): Promise<ServedMetrics | undefined> {
  if (!metrics && metricsPort === undefined) return undefined
  const { openMetrics } = await import('./metrics.ts')
  return openMetrics(llm, open)
}

/** Loaded on use, because few servers have a console. */
async function consoleFor(llm: Llm, host: string): Promise<ServedConsole> {
  const { openConsole } = await import('./console.ts')
  return openConsole(llm, isLoopback(host))
}

/** For `modelmount top`. */
const activityHandler = (llm: Llm, open: boolean): RequestListener =>
  toNodeHandler(activityRoutes(), llm, {
    prefix: '/admin',
    ...(open && { authenticate: (req) => findOperator(req as express.Request) }),
  })

const logWithFlags = (details: object, message: string): void => logToStderr(details, withFlags(message))
const quietLogger: Logger = { warn: logWithFlags, error: logWithFlags }
const accessLogger: Logger = { ...quietLogger, info: logFieldsToStderr }

/** The caller without an API key. Each client address is a tenant, so that no client takes the share of others. */
export const callerAt = ({ ip }: Pick<express.Request, 'ip'>): Caller => ({
  id: 'anyone',
  tenant: addressKey(ip),
})

/**
 * Resolves when the server listens. Rejects with an error that names the program which uses the port.
 *
 * The server sets no time limit for whole requests, because an upload may take hours. The routes limit the
 * pauses of a body instead. An idle connection stays open for longer than the 60 s for which most balancers use
 * it again.
 */
export async function listen(
  app: RequestListener,
  host: string,
  port: number,
  flag = '--port',
): Promise<Server> {
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
      `Port ${port} on ${host} is in use by ${occupant}. Stop it, or choose another port: ${flag} ${port < 65_535 ? port + 1 : port - 1}`,
    )
  }
}

async function warnWithoutModels(llm: Llm, folder: string | undefined): Promise<void> {
  const models = await llm.models.list()
  if (models.length === 0) print('Warning: no model found. Put a GGUF file into the folder of models.')
  else if (folder !== undefined && models.every(({ isBuiltIn }) => isBuiltIn))
    print(`Warning: no GGUF file found in ${folder}.`)
}

/** Windows sends no SIGTERM. It sends SIGBREAK for Ctrl-Break, and SIGHUP when the console is closed. */
export const closingSignals = (platform = process.platform): readonly NodeJS.Signals[] =>
  platform === 'win32' ? ['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP'] : ['SIGINT', 'SIGTERM']

function closeAtSignals(servers: readonly Server[], llm: Llm, drainMs: number): void {
  const stop = async (): Promise<void> => {
    for (const server of servers) server.close()
    await llm.close({ drain: drainMs })
    // A connection becomes idle when its last answer ends, and would stay open for a further request.
    for (const server of servers) server.closeAllConnections()
  }
  for (const signal of closingSignals())
    process.on(signal, () => {
      // A second signal ends the process at once.
      if (llm.isClosing) process.exit(128 + constants.signals[signal])
      void stop()
    })
}

/** Said before someone creates a key that no call can use. */
const noPrices = `Prices: none, which spending limits of keys need. Set them with --prices FILE, where the file has {"*": {"inputPerMillionUsd": 0.5, "outputPerMillionUsd": 2}}`

const urlOf = (host: string, port: number): string => `http://${withBrackets(host)}:${port}`

const print = (line: string): boolean => process.stdout.write(`${line}\n`)

function fail(message: string): never {
  throw new Error(message)
}
