/** Adapts the routes of our controllers to Fastify, whose router and body parsers differ from those of Express. */
import { SetMetadata } from '@nestjs/common'

/** Nest passes this metadata of a handler to Fastify as the `config` of the route. */
const routeConfig = '__fastify_route_config__'
const isOurs = Symbol('isOurs')

const isHome = Symbol('isHome')

/** Marks a handler as ours. @param pattern the path of the route in the route table */
export const markRoute = (pattern: string): MethodDecorator =>
  SetMetadata(routeConfig, { [isOurs]: true, [isHome]: pattern === '/' })

type RouteHook = (request: { readonly method: string; headers: object }) => Promise<void>

/** The options of a route that the hook reads and changes. */
interface NestFastifyRoute {
  url: string
  readonly method: unknown
  readonly config?: { readonly [isOurs]?: true; readonly [isHome]?: boolean }
  preParsing?: RouteHook | RouteHook[]
  preValidation?: RouteHook | RouteHook[]
}

/** The methods of a Fastify app that this file uses. */
export interface NestFastifyApp {
  route(route: NestFastifyRoute): unknown
  addHook(name: 'onRoute', hook: (route: NestFastifyRoute) => void): unknown
}

/** Fastify's wildcard has no name: `/v1/models/*model` becomes `/v1/models/*`. */
export const toFastifyUrl = (path: string): string => path.replace(/\*\w+$/, '*')

/** Adapts all of our routes that Nest adds to the app from now on. Routes of the app stay as they are. */
export function adaptRoutes(app: NestFastifyApp): void {
  app.addHook('onRoute', (route) => {
    if (!route.config?.[isOurs]) return
    // Nest removes the slash at the end, and Fastify then matches the path without it only.
    if (route.config[isHome] && route.method === 'GET' && !route.url.endsWith('/'))
      app.route({ ...route, url: `${route.url}/` })
    route.url = toFastifyUrl(route.url)
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
