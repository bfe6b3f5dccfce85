/** Health routes for load balancers and orchestrators. They need no authentication, and say no more than `ok`. */
import { type Access, AuthenticateError } from '../../accounts/auth/access.ts'
import { LlmError } from '../../errors.ts'
import type { Health } from '../../health/health-checks.ts'
import { isDirectLoopback, isLocalHost } from '../../http/guard.ts'
import type { HttpRequest, HttpResponse } from '../../http/message.ts'
import { json, text } from '../../http/respond.ts'
import type { Route } from '../../http/route.ts'
import { internals, type Llm } from '../../llm.ts'
import { createModelFilter, modelNotAllowed } from '../../models/model-filter.ts'
import { checkKeys, checkStrings } from '../../options/check.ts'
import { authorizeOperator } from '../authorize-operator.ts'
import { checkLlm, checkMount } from '../check-mount.ts'
import type { Dialect } from '../dialect.ts'
import { renderError } from '../operator-route.ts'
import { createDialectTable, type DialectTable } from '../table.ts'

/** Options of the health routes. */
export interface HealthRouteOptions {
  /**
   * Names of models for which `/readyz?model=` needs no authentication.
   *
   * @default none
   */
  readonly models?: readonly string[] | undefined
}

/** Returns `/livez`, `/readyz` and `/startupz`. Throws a `TypeError` for an invalid option. */
export function healthRoutes(options: HealthRouteOptions = {}): DialectTable {
  const { models = [] } = options
  checkKeys('', options, ['models'])
  checkStrings('models', models)
  const table = createDialectTable([createDialect(models)])
  return {
    ...table,
    // Unlike other routes, these need no `authenticate`.
    checkMount: (llm, authenticate) => (authenticate ? checkMount(llm, authenticate) : checkLlm(llm)),
  }
}

const createDialect = (models: readonly string[]): Dialect => ({
  name: 'health',
  isSpokenBy: undefined,
  home: undefined,
  checkOrigin: () => ({}),
  renderError: (_request, error) => renderError(error),
  routes: createRoutes(models),
})

function createRoutes(publicModels: readonly string[]): readonly Route<Llm>[] {
  /** Apps that were ready once. Their start is over, whatever happens later. */
  const started = new WeakSet<Llm>()
  const checkReady = async (llm: Llm, models: readonly string[] = []): Promise<Health> => {
    const health = await llm.checkHealth({ models })
    if (health.status === 'ok') started.add(llm)
    return health
  }
  const get = (
    path: string,
    handle: (request: HttpRequest, llm: Llm) => Promise<HttpResponse>,
  ): Route<Llm> => ({
    method: 'GET',
    path,
    handle: async (request, llm) => {
      try {
        return withoutCaching(await handle(request, llm))
      } catch (cause) {
        // It belongs to the error handler of the app.
        if (cause instanceof AuthenticateError) throw cause.cause
        const error = LlmError.from(cause)
        llm[internals].report(error)
        return renderError(error)
      }
    },
  })
  return [
    // An answer proves that the event loop turns.
    get('/livez', async () => renderStatus('ok')),
    get('/startupz', async (_request, llm) =>
      renderStatus(started.has(llm) ? 'ok' : (await checkReady(llm)).status),
    ),
    get('/readyz', async (request, llm) => {
      const model = request.query('model') || undefined
      const isVerbose = request.query('verbose') !== undefined
      const { access } = llm[internals]
      if (isVerbose) await authorizeOperator(request, access)
      else if (model !== undefined && !publicModels.includes(model) && !isFromThisMachine(request))
        await authorizeModel(request, access, model)
      const health = await checkReady(llm, model === undefined ? [] : [model])
      return isVerbose ? json(health, statusCodes[health.status]) : renderStatus(health.status)
    }),
  ]
}

async function authorizeModel(request: HttpRequest, access: Access, model: string): Promise<void> {
  const { models } = await access.authorize(request, 'inference')
  if (!createModelFilter(models)(model)) throw modelNotAllowed(model)
}

/** Such as the probe of an orchestrator that runs in the container. */
const isFromThisMachine = (request: HttpRequest): boolean =>
  isDirectLoopback(request) && isLocalHost(request.header('host'))

const statusCodes = { ok: 200, unavailable: 503 } as const

const renderStatus = (status: Health['status']): HttpResponse => text(status, statusCodes[status])

const withoutCaching = ({ headers, ...response }: HttpResponse): HttpResponse => ({
  ...response,
  headers: { ...headers, 'cache-control': 'no-store' },
})
