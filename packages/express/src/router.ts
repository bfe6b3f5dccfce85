/** Mounts the routes of an `Llm` in an Express app, as real routes of a real router. */
import { type DialectName, type Llm, routesFor } from '@modelmount/core'
import {
  methodsByPath,
  type NodeRequestOptions,
  readNodeRequest,
  writeNodeResponse,
} from '@modelmount/core/http'
import { type ErrorRequestHandler, type Request, type RequestHandler, Router } from 'express'

export interface RouterOptions {
  /** Which public APIs to speak. @default all */
  readonly dialects?: readonly DialectName[]
  /**
   * Paths that no route of ours has: `pass` leaves them to the app's own routes behind,
   * `error` answers 404 in the dialect of the client.
   *
   * @default `error` under a prefix, `pass` at the root
   */
  readonly unknownRoutes?: 'pass' | 'error'
  /** The largest request body. @default '32mb' */
  readonly bodyLimit?: NodeRequestOptions['bodyLimit']
}

/** Mount it before `express.json()`, whose limit of 100 kB is small for prompts. */
export function llmRouter(llm: Llm, options: RouterOptions = {}): Router {
  const { routes, unrouted } = routesFor(options.dialects)
  const router = Router({ caseSensitive: true })

  for (const { method, path, handle } of routes) {
    const verb = method.toLowerCase() as Lowercase<typeof method>
    router[verb](path, async (req, res) => {
      const { params, body: parsedBody } = req
      const request = readNodeRequest(req, res, {
        path: req.path,
        params,
        parsedBody,
        bodyLimit: options.bodyLimit,
      })
      await writeNodeResponse(await handle(request, llm), res)
    })
  }

  const refuse =
    (allowed: Parameters<typeof unrouted>[1]): RequestHandler =>
    async (req, res, next) => {
      // Express itself answers OPTIONS, from the routes it knows.
      if (req.method === 'OPTIONS' || (allowed.length === 0 && passes(req))) return next()
      await writeNodeResponse(unrouted(readNodeRequest(req, res, { path: req.path }), allowed), res)
    }
  const passes = (req: Request): boolean =>
    (options.unknownRoutes ?? (req.baseUrl === '' ? 'pass' : 'error')) === 'pass'
  // Express matches the routes in order, and a path that cannot be percent-decoded ends up here.
  const undecodable: ErrorRequestHandler = (error, req, res, next) =>
    error instanceof URIError ? refuse([])(req, res, next) : next(error)

  for (const [path, allowed] of methodsByPath(routes)) router.all(path, refuse(allowed))
  router.use(refuse([]))
  router.use(undecodable)
  return router
}
