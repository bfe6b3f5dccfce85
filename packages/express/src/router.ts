/** Mounts the routes of an `Llm` in an app of Express 4 or 5, as routes of an Express router. */
import type { Llm } from '@modelmount/core'
import {
  type AdminMountOptions,
  type HealthMountOptions,
  type MetricsMountOptions,
  type Mount,
  type MountOptions,
  prepareAdminMount,
  prepareHealthMount,
  prepareMetricsMount,
  prepareMount,
} from '@modelmount/core/adapter'
import { readExpressClient, readNodeRequest, writeNodeResponse } from '@modelmount/core/http'
import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'

/** Options of `llmRouter()`. `authenticate` gets the request of Express. */
export type RouterOptions = MountOptions<Request>
/** Options of `adminRouter()`. `authenticate` gets the request of Express. */
export type AdminRouterOptions = AdminMountOptions<Request>
/** Options of `healthRouter()`. `authenticate` gets the request of Express. */
export type HealthRouterOptions = HealthMountOptions<Request>
/** Options of `metricsRouter()`. `authenticate` gets the request of Express. */
export type MetricsRouterOptions = MetricsMountOptions<Request>

/**
 * Creates a router with the routes of an `Llm`. Mount it before `express.json()`, whose limit of 100 kB is
 * too small for long prompts.
 */
export const llmRouter = (llm: Llm, options: RouterOptions = {}): Router =>
  createRouter(llm, prepareMount(llm, options))

/**
 * Creates a router with the admin API, for callers with the scope `admin`. Mount it under a separate path,
 * such as `/admin`.
 */
export const adminRouter = (llm: Llm, options: AdminRouterOptions = {}): Router =>
  createRouter(llm, prepareAdminMount(llm, options))

/**
 * Creates a router with `/livez`, `/readyz` and `/startupz`, which load balancers and orchestrators call without
 * authentication.
 */
export const healthRouter = (llm: Llm, options: HealthRouterOptions = {}): Router =>
  createRouter(llm, prepareHealthMount(llm, options))

/**
 * Creates a router with `GET /metrics` for Prometheus, for callers with the scope `admin:read`, and with
 * `auth: 'anonymous'` for direct calls from this machine. Needs the package `prom-client`.
 */
export const metricsRouter = (llm: Llm, options: MetricsRouterOptions = {}): Router =>
  createRouter(llm, prepareMetricsMount(llm, options))

/** Creates a router with the routes of another package, which `prepareTable()` has checked. */
export function createRouter(
  llm: Llm,
  { routes, handleUnmatched, passesUnmatched, bodyLimit, publicUrl, authenticate }: Mount<Request>,
): Router {
  const router = Router({ caseSensitive: true })

  for (const { method, path, handle } of routes) {
    const verb = method.toLowerCase() as Lowercase<typeof method>
    const answer = async (req: Request, res: Response): Promise<void> => {
      const { params, body: parsedBody } = req
      const request = readNodeRequest(req, res, {
        path: req.path,
        params,
        parsedBody,
        bodyLimit,
        publicUrl,
        ...readExpressClient(req),
        authenticate: (disconnected) => authenticate(req, disconnected),
      })
      await writeNodeResponse(await handle(request, llm), res)
    }
    // Express 4 ignores the promise of a handler, so errors are passed to `next`.
    router[verb](toPattern(path), (req, res, next) => void answer(req, res).catch(next))
  }

  const refuse: RequestHandler = (req, res, next) => {
    if (req.method === 'OPTIONS' || passesUnmatched(req.baseUrl)) return next()
    const request = readNodeRequest(req, res, { path: req.path, ...readExpressClient(req) })
    writeNodeResponse(handleUnmatched(request, llm), res).catch(next)
  }
  // Express passes a `URIError` when it cannot percent-decode a path. Such a path counts as unknown.
  const undecodable: ErrorRequestHandler = (error, req, res, next) =>
    error instanceof URIError ? refuse(req, res, next) : next(error)

  router.use(refuse)
  router.use(undecodable)
  return router
}

/**
 * Converts a path to the syntax of this Express version. Express 4 writes the wildcard `*model` as
 * `:model(*)`, and Express 5 throws for `:model(*)`. The function tries that syntax, because the version in a
 * package.json may belong to another copy of Express.
 */
function toPattern(path: string): string {
  const inExpress4 = path.replaceAll(/\*(\w+)/g, ':$1(*)')
  try {
    Router().route(inExpress4)
    return inExpress4
  } catch {
    return path
  }
}
