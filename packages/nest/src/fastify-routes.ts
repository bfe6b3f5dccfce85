/** Adapts the routes of our controllers to Fastify, whose router and body parsers differ from those of Express. */
import { SetMetadata } from '@nestjs/common'

/** Nest passes this metadata of a handler to Fastify as the `config` of the route. */
const routeConfig = '__fastify_route_config__'
const servedMethods = Symbol('servedMethods')

/** Marks a handler as ours. @param served methods of the path that have routes before an `ALL` route */
export const markRoute = (served: readonly string[]): ReturnType<typeof SetMetadata> =>
  SetMetadata(routeConfig, { [servedMethods]: served })

type RouteHook = (request: { readonly method: string; headers: object }) => Promise<void>

/** The options of a route that the hook reads and changes. */
interface NestFastifyRoute {
  url: string
  method: string | string[]
  readonly config?: { readonly [servedMethods]?: readonly string[] }
  preParsing?: RouteHook | RouteHook[]
  preValidation?: RouteHook | RouteHook[]
}

/** The method of a Fastify app that this file uses. */
export interface NestFastifyApp {
  addHook(name: 'onRoute', hook: (route: NestFastifyRoute) => void): unknown
}

/** Fastify's wildcard has no name: `/v1/models/*model` becomes `/v1/models/*`. */
export const toFastifyUrl = (path: string): string => path.replace(/\*\w+$/, '*')

/** Adapts all of our routes that Nest adds to the app from now on. Routes of the app stay as they are. */
export function adaptRoutes(app: NestFastifyApp): void {
  app.addHook('onRoute', (route) => {
    const served = route.config?.[servedMethods]
    if (served === undefined) return
    route.url = toFastifyUrl(route.url)
    // Fastify allows one route per method and path, and adds a HEAD route to each GET route.
    if (Array.isArray(route.method))
      route.method = route.method.filter(
        (method) => !served.includes(method) && !(method === 'HEAD' && served.includes('GET')),
      )
    route.preParsing = [hideBody].concat(route.preParsing ?? [])
    route.preValidation = [showBody].concat(route.preValidation ?? [])
  })
}

/** Our routes read their bodies themselves. Without these headers, Fastify runs no parser. */
const hideBody: RouteHook = async (request) => {
  // Fastify rejects this method without a content-type. None of our routes has it.
  if (request.method === 'QUERY') return
  request.headers = {
    'content-type': undefined,
    'content-length': undefined,
    'transfer-encoding': undefined,
  }
}

/** Restores the headers of the client, for guards and other hooks. */
const showBody: RouteHook = async (request) => {
  request.headers = {}
}
