/** The conformance suite checks every requirement on one mount. Each adapter has a test that calls it. */
import type { RequestListener, Server } from 'node:http'
import { type Caller, createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { runLog } from '../support/run-log.ts'
import { checks as anthropic } from './anthropic.ts'
import { badInput as anthropicBadInput } from './anthropic-bad-input.ts'
import { batchesBadInput } from './anthropic-batches.ts'
import { badInput as openaiBadInput } from './bad-input.ts'
import { faults } from './faults.ts'
import { guests } from './guests.ts'
import { manners } from './manners.ts'
import { checks as ollama } from './ollama.ts'
import { badInput as ollamaBadInput } from './ollama-bad-input.ts'
import { badNamesAndBodies } from './ollama-bad-names.ts'
import { checks as openai } from './openai.ts'
import { type RequirementId, requirements } from './requirements.ts'

const checks = { ...openai, ...anthropic, ...ollama }
const badInput = {
  ...openaiBadInput,
  ...anthropicBadInput,
  ...batchesBadInput,
  ...ollamaBadInput,
  ...badNamesAndBodies,
}

/** The mounts besides Node's server. */
const otherMounts = ['Express 5', 'Express 4', 'Fastify', 'fetch', 'Koa', 'Nest', 'Nest on Fastify'] as const
export type MountName = (typeof otherMounts)[number] | "Node's own server"

/** Mounts the routes in an app, and `hostApp` behind them. Returns a handler for Node's own server. */
export type Mount = (llm: Llm, options: MountGiven) => RequestListener

/** The options of an adapter. At the root, `pass` is the default of `unknownRoutes`, and below a prefix `error`. */
export interface MountGiven {
  readonly authenticate?: WhoCalls | undefined
  readonly unknownRoutes?: 'error' | undefined
  readonly cloudRoutes?: boolean
  readonly llamaServerRoutes?: boolean
  /** Path of the mount point, such as `/llm`. Absent at the root. */
  readonly prefix?: string | undefined
}

/** The host app behind the routes. It answers with a header of its own, and with the body of the request. */
export const hostApp: RequestListener = (req, res) => {
  res.setHeader('x-answered-by', 'the app')
  req.pipe(res)
}

/** The option `authenticate` of an adapter. */
export type WhoCalls = () => Caller | undefined

/** Starts a server with the mounted routes, which runs until the test ends. Resolves with its URL. */
export type Serve = (engine: Engine, given?: Given) => Promise<string>

/** Starts a server like `Serve`, and resolves with the objects of the host app. */
export type Start = (engine: Engine, given?: Given) => Promise<Started>

export interface Given extends Pick<LlmOptions, 'maxQueued' | 'prices' | 'scopes' | 'batches'> {
  readonly inFront?: InFront
  /** Model folder. The built-in model is always present. @default an empty folder */
  readonly models?: string
  /** Requires API keys. */
  readonly keys?: boolean
  /** @default with `keys` or `batches`, a new one in memory */
  readonly database?: string
  /** Authenticates with `auth: 'host'`. @default `auth: 'anonymous'` */
  readonly caller?: WhoCalls
  /** @default at the root with all routes, and no request passes to the app */
  readonly mounted?: Omit<MountGiven, 'authenticate'>
}

export interface Started {
  readonly url: string
  readonly server: Server
  readonly llm: Llm
}

/** Middleware of the host app before the mounted routes. */
export type InFront = (mounted: RequestListener) => RequestListener

/**
 * Returns the engine of the app, which answers with the engine of a check. It may start servers until the test ends.
 *
 * @param models model folder of the app
 */
export type WrapEngine = (engine: Engine, models: string) => Promise<Engine>

const nothing: InFront = (mounted) => mounted

export type Check = (serve: Serve, start: Start) => Promise<void>

/**
 * Defines the conformance tests of one mount.
 * @param notHere Checks that this mount cannot pass, by requirement id or check title, with the reason.
 * A listed check must fail. If it passes, the test fails.
 * @param rows `mount`: only checks that depend on the mount (bodies, faults, authentication, origins, requests for the app).
 * `shared`: only the other checks, of which each runs on one of the other mounts. The long run has them on all mounts.
 * @param wrapEngine @default the engine of the check answers
 */
export function conformanceSuite(
  name: MountName,
  mount: Mount,
  notHere: Readonly<Record<string, string>> = {},
  rows: 'all' | 'mount' | 'shared' = inject('conformanceRows'),
  wrapEngine: WrapEngine = async (engine) => engine,
): void {
  const hasMountRows = rows !== 'shared'
  const hasSharedRows = rows !== 'mount'
  const isSample = rows === 'shared' && !inject('isThorough')

  describe(`routes mounted in ${name}`, () => {
    const noModels = emptyFolder()

    const start: Start = async (engine, given = {}) => {
      const { inFront = nothing, models = noModels, keys = false, caller, maxQueued, prices, scopes } = given
      const { mounted = { unknownRoutes: 'error', cloudRoutes: true, llamaServerRoutes: true } } = given
      const { batches, database = keys || batches ? ':memory:' : undefined } = given
      const llm = await createLlm({
        engine: await wrapEngine(engine, models),
        models,
        maxQueued,
        prices,
        scopes,
        batches,
        database,
        auth: keys ? 'keys' : caller ? 'host' : 'anonymous',
        logger: runLog,
        // No test may reach a registry on the internet.
        store: { registries: [], privateRegistries: ['127.0.0.1:1'] },
      })
      const { close, ...listening } = await listen(inFront(mount(llm, { ...mounted, authenticate: caller })))
      onTestFinished(async () => {
        await close()
        await llm.close()
      })
      return { ...listening, llm }
    }
    const serve: Serve = async (...host) => (await start(...host)).url

    if (hasSharedRows)
      test('every requirement has one check, and every check a requirement', () => {
        expect(Object.keys(checks).sort()).toEqual(Object.keys(requirements).sort())
      })

    let count = 0
    const run = (key: string, title: string, check: Check): void => {
      const reason = notHere[key]
      if (isSample && reason === undefined && otherMounts[count++ % otherMounts.length] !== name) return
      if (reason === undefined) test(title, () => check(serve, start))
      else test(`${title} (expected to fail: ${reason})`, () => expect(check(serve, start)).rejects.toThrow())
    }

    for (const [id, { behavior }] of Object.entries(requirements)) {
      if (isTransport(id) ? hasMountRows : hasSharedRows)
        run(id, `${id}: ${behavior}`, checks[id as RequirementId])
    }

    const describeRows = (title: string, all: Readonly<Record<string, Check>>): void => {
      describe(title, () => {
        for (const [what, check] of Object.entries(all)) run(what, what, check)
      })
    }
    if (hasSharedRows) describeRows('invalid requests', badInput)
    if (hasMountRows) describeRows('failures, slow models and disconnected clients', faults)
    if (hasMountRows) describeRows('authentication and origins', manners)
    if (hasMountRows) describeRows('requests for the app', guests)
  })
}

/** Whether a requirement is about bodies or connections, so that its result can depend on the framework. */
const isTransport = (id: string): boolean => /:(transport|blobs):/.test(id)
