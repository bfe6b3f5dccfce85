/** Mounts the routes of an `Llm` in a Koa app, as routes of a router of @koa/router. */
import { METHODS } from 'node:http'
import { Readable } from 'node:stream'
import { Router, type RouterContext, type RouterMiddleware } from '@koa/router'
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
import {
  type HttpRequest,
  type HttpResponse,
  type NodeRequestOptions,
  readNodeRequest,
} from '@modelmount/core/http'

/**
 * Options of `llmRouter()`. Under koa-mount, `unknownRoutes` is `pass` by default, because koa-mount hides
 * its prefix from the router.
 */
export type RouterOptions = MountOptions<RouterContext>
/** Options of `adminRouter()`. `authenticate` gets the context of the router. */
export type AdminRouterOptions = AdminMountOptions<RouterContext>
/** Options of `healthRouter()`. `authenticate` gets the context of the router. */
export type HealthRouterOptions = HealthMountOptions<RouterContext>
/** Options of `metricsRouter()`. `authenticate` gets the context of the router. */
export type MetricsRouterOptions = MetricsMountOptions<RouterContext>

/**
 * Creates a router with the routes of an `Llm`. Use its `routes()` before a body parser, whose limit of 1 MB
 * is too small for long prompts.
 */
export const llmRouter = (llm: Llm, options: RouterOptions = {}): Router =>
  createRouter(llm, prepareMount(llm, options))

/**
 * Creates a router with the admin API, for callers with the scope `admin`. Give it a separate path:
 * `.prefix('/admin')`.
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
  { routes, handleUnmatched, passesUnmatched, bodyLimit, publicUrl, authenticate }: Mount<RouterContext>,
): Router {
  const router = new Router({ sensitive: true })
  const handlers = new Set<unknown>()
  const add = (
    path: string,
    methods: string[],
    handler: RouterMiddleware,
    options?: Parameters<Router['register']>[3],
  ): void => {
    handlers.add(handler)
    router.register(path, methods, handler, options)
  }

  for (const { method, path, handle } of routes) {
    add(path, [method], async (ctx) => {
      const request = read(ctx, path, {
        params: ctx.params,
        parsedBody: bodyOf(ctx.request) ?? bodyOf(ctx.req),
        bodyLimit,
        publicUrl,
        authenticate: (disconnected) => authenticate(ctx, disconnected),
      })
      reply(ctx, await handle(request, llm))
    })
  }
  add(
    everything,
    METHODS,
    (ctx, next) => {
      if (ctx.method !== 'OPTIONS' && !passesUnmatched(prefixOf(ctx, everything)))
        return reply(ctx, handleUnmatched(read(ctx, everything), llm))
      // Hides our routes from the rest of the app: `allowedMethods()` reads `matched`, and metrics read
      // `_matchedRoute`.
      Object.assign(ctx, {
        matched: ctx.matched?.filter(({ stack }) => !stack.some((one) => handlers.has(one))),
        _matchedRoute: undefined,
      })
      return next()
    },
    { ignoreWildcardParameter: 'rest' },
  )
  return router
}

/**
 * Matches every path below the prefix of the router, which @koa/router adds in front. The slash is optional,
 * so that the pattern also matches the prefix itself.
 */
const everything = '{/*rest}'

const prefixOf = (ctx: RouterContext, pattern: string): string =>
  String(ctx.routerPath).slice(0, -pattern.length)

/**
 * Reads a request. Removes the prefix of the router from the path, unless the prefix has parameters.
 * @param pattern the pattern of the route, without the prefix of the router
 */
function read(ctx: RouterContext, pattern: string, options?: Omit<NodeRequestOptions, 'path'>): HttpRequest {
  const prefix = prefixOf(ctx, pattern)
  const path = ctx.path.startsWith(prefix) ? ctx.path.slice(prefix.length) : ctx.path
  // Koa reads the headers of proxies only with `app.proxy`.
  const { ip: clientAddress, host, protocol, originalUrl } = ctx
  return readNodeRequest(ctx.req, ctx.res, {
    ...{ path: path || '/', clientAddress, host, protocol, originalUrl },
    ...options,
  })
}

/**
 * Returns the parsed body of a request. Koa's body parsers set it on `ctx.request`, serverless hosts on
 * Node's request.
 */
const bodyOf = (request: object): unknown => ('body' in request ? request.body : undefined)

/** Answers through Koa, so that middleware can see and change the status and the body. */
function reply(ctx: RouterContext, { status, headers, body }: HttpResponse): void {
  if (body === null || typeof body === 'string') ctx.body = body
  else {
    ctx.body = Readable.from(body) // Koa destroys the stream when the client disconnects.
    // Middleware may add headers until Koa pipes the body. At that point, the headers are sent, because the
    // first frame may take long.
    ctx.res.once('pipe', () => ctx.res.flushHeaders())
  }
  ctx.status = status // Set after the body, because Koa sets 204 for a null body.
  ctx.set(headers)
}
