/** Every requirement, checked on one way to mount the routes: an adapter brings only that way. */
import type { RequestListener, Server } from 'node:http'
import { type Caller, createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { runLog } from '../support/run-log.ts'
import { checks as anthropic } from './anthropic.ts'
import { badInput as anthropicBadInput } from './anthropic-bad-input.ts'
import { badInput as openaiBadInput } from './bad-input.ts'
import { faults } from './faults.ts'
import { manners } from './manners.ts'
import { checks as ollama } from './ollama.ts'
import { badInput as ollamaBadInput } from './ollama-bad-input.ts'
import { badNamesAndBodies } from './ollama-bad-names.ts'
import { checks as openai } from './openai.ts'
import { type RequirementId, requirements } from './requirements.ts'

const checks = { ...openai, ...anthropic, ...ollama }
const badInput = { ...openaiBadInput, ...anthropicBadInput, ...ollamaBadInput, ...badNamesAndBodies }

/** Makes a handler for Node's own server. Paths that no route has are to be answered, not passed on. */
export type Mount = (llm: Llm, caller?: WhoCalls) => RequestListener

/** The option of the same name of every adapter. */
export type WhoCalls = () => Caller | undefined

/** Starts a server around the mounted routes, until the test is over, and resolves with its URL. */
export type Serve = (engine: Engine, given?: Given) => Promise<string>

/** The same, with what a host has in its hands. */
export type Start = (engine: Engine, given?: Given) => Promise<Started>

export interface Given extends Pick<LlmOptions, 'maxQueued' | 'prices' | 'scopes'> {
  readonly inFront?: InFront
  /** Model folder; the built-in model is always present. @default an empty folder */
  readonly models?: string
  /** Requires API keys, from a separate database. */
  readonly keys?: boolean
  /** Authenticates with `auth: 'host'`. @default `auth: 'anonymous'` */
  readonly caller?: WhoCalls
}

export interface Started {
  readonly url: string
  readonly server: Server
  readonly llm: Llm
}

/** Middleware of the host before the mounted routes. */
export type InFront = (mounted: RequestListener) => RequestListener

const nothing: InFront = (mounted) => mounted

export type Check = (serve: Serve, start: Start) => Promise<void>

/**
 * @param notHere what a mount cannot do by its nature, by the id of a requirement or the name of a bad input,
 * with the reason. The check has to fail there: an exception that is none any more is an error.
 * @param rows `mount`: transport, faults and manners, which depend on the mount. `shared`: all other rows.
 */
export function conformanceSuite(
  name: string,
  mount: Mount,
  notHere: Readonly<Record<string, string>> = {},
  rows: 'all' | 'mount' | 'shared' = inject('conformanceRows'),
): void {
  const hasMountRows = rows !== 'shared'
  const hasSharedRows = rows !== 'mount'

  describe(`routes mounted in ${name}`, () => {
    const noModels = emptyFolder()

    const start: Start = async (engine, given = {}) => {
      const { inFront = nothing, models = noModels, keys = false, caller, maxQueued, prices, scopes } = given
      const llm = await createLlm({
        engine,
        models,
        maxQueued,
        prices,
        scopes,
        ...(keys ? { auth: 'keys', database: ':memory:' } : { auth: caller ? 'host' : 'anonymous' }),
        logger: runLog,
        // Nobody here speaks to the world.
        store: { registries: [], privateRegistries: ['127.0.0.1:1'] },
      })
      const { close, ...listening } = await listen(inFront(mount(llm, caller)))
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

    const run = (key: string, title: string, check: Check): void => {
      const reason = notHere[key]
      if (reason === undefined) test(title, () => check(serve, start))
      else test(`${title} Not here: ${reason}`, () => expect(check(serve, start)).rejects.toThrow())
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
    if (hasSharedRows) describeRows('given bad input', badInput)
    if (hasMountRows) describeRows('when something goes wrong', faults)
    if (hasMountRows) describeRows('asked by somebody else', manners)
  })
}

/** Whether a framework can change what a requirement demands: how bodies and streams pass it. */
const isTransport = (id: string): boolean => /:(transport|blobs):/.test(id)
