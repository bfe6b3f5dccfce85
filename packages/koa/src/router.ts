/** Mounts the routes of an `Llm` in a Koa app, as real routes of a real router. */
import { METHODS } from 'node:http'
import { Readable } from 'node:stream'
import { Router, type RouterContext, type RouterMiddleware } from '@koa/router'
import type { Llm } from '@modelmount/core'
import {
  type AdminMountOptions,
  type Mount,
  type MountOptions,
  prepareAdminMount,
  prepareMount,
} from '@modelmount/core/adapter'
import {
  type HttpRequest,
  type HttpResponse,
  methodsByPath,
  type NodeRequestOptions,
  readNodeRequest,
} from '@modelmount/core/http'

/** In koa-mount, which hides its prefix, unknown paths are passed on by default, as at the root. */
export type RouterOptions = MountOptions<RouterContext>
export type AdminRouterOptions = AdminMountOptions<RouterContext>

/** Use its `routes()` before a body parser, whose limit of 1 MB is small for long prompts. */
export const llmRouter = (llm: Llm, options: RouterOptions = {}): Router =>
  routerOf(llm, prepareMount(llm, options), options)

/** The admin API, for callers with the scope `admin`. Give it a separate path: `.prefix('/admin')`. */
export const adminRouter = (llm: Llm, options: AdminRouterOptions = {}): Router =>
  routerOf(llm, prepareAdminMount(llm, options), options)

function routerOf(
  llm: Llm,
  { routes, handleUnmatched, bodyLimit }: Mount,
  options: AdminRouterOptions,
): Router {
  const router = new Router({ sensitive: true })

  for (const { method, path, handle } of routes) {
    router.register(path, [method], async (ctx) => {
      const request = read(ctx, path, {
        params: ctx.params,
        parsedBody: bodyOf(ctx.request) ?? bodyOf(ctx.req),
        bodyLimit,
        caller: await options.authenticate?.(ctx),
      })
      reply(ctx, await handle(request, llm))
    })
  }
  for (const [path, allowed] of methodsByPath(routes))
    router.all(path, (ctx) => reply(ctx, handleUnmatched(read(ctx, path), allowed, llm)))

  const unknown: RouterMiddleware = (ctx, next) => {
    const { unknownRoutes = prefixOf(ctx, everything) === '' ? 'pass' : 'error' } = options
    if (unknownRoutes === 'error' && ctx.method !== 'OPTIONS')
      return reply(ctx, handleUnmatched(read(ctx, everything), [], llm))
    // As if it had not matched: `allowedMethods()` answers from what is left, and metrics name no route.
    Object.assign(ctx, {
      matched: ctx.matched?.filter(({ stack }) => !stack.includes(unknown)),
      _matchedRoute: undefined,
    })
    return next()
  }
  // Later routes of the app share `ctx.params`, which must not contain our `rest`.
  router.register(everything, METHODS, unknown, { ignoreWildcardParameter: 'rest' })
  return router
}

/** Below the prefix, too, since the pattern gets it in front; the slash is optional, so that the prefix itself is in. */
const everything = '{/*rest}'

const prefixOf = (ctx: RouterContext, pattern: string): string =>
  String(ctx.routerPath).slice(0, -pattern.length)

/** @param pattern of the route, without its prefix; one with parameters stays on the path */
function read(ctx: RouterContext, pattern: string, options?: Omit<NodeRequestOptions, 'path'>): HttpRequest {
  const prefix = prefixOf(ctx, pattern)
  const path = ctx.path.startsWith(prefix) ? ctx.path.slice(prefix.length) : ctx.path
  return readNodeRequest(ctx.req, ctx.res, { path: path || '/', ...options })
}

/** The parsed body of a request. Koa's body parsers set it on `ctx.request`, serverless hosts on Node's request. */
const bodyOf = (request: object): unknown => ('body' in request ? request.body : undefined)

/** Answers through Koa, so that middleware can see and change the status and the body. */
function reply(ctx: RouterContext, { status, headers, body }: HttpResponse): void {
  if (body === null || typeof body === 'string') ctx.body = body
  else {
    ctx.body = Readable.from(body) // Koa closes it when the client leaves.
    // Middleware may add headers until Koa responds. Then they are flushed at once: the first frame may take long.
    ctx.res.once('pipe', () => ctx.res.flushHeaders())
  }
  ctx.status = status // After the body: Koa turns a null body into 204.
  ctx.set(headers)
}
