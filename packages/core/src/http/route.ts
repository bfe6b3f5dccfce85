/** Routes as data, so that each framework can mount them with its own router. */
import { type MatchFunction, match, type ParamData } from 'path-to-regexp'
import type { ByteSize } from '../units.ts'
import type { HttpRequest, HttpResponse, Method } from './message.ts'
import { text } from './respond.ts'

/** An HTTP method, a path and a handler, independent of the framework. */
export interface Route<Context> {
  /** HTTP method. `GET` also answers `HEAD` requests. */
  readonly method: Method
  /** A path-to-regexp 8 pattern. It has the same meaning in Express 5, @koa/router 15 and Nest 12. */
  readonly path: string
  /** Largest request body, in bytes or with a unit. @default '32mb' */
  readonly bodyLimit?: ByteSize
  /** Answers a request. May reject with any error: the adapter then renders it in the client's dialect. */
  handle(request: HttpRequest, context: Context): Promise<HttpResponse>
}

/** Routes, and a handler for requests that match no route. */
export interface RouteTable<Context> {
  /** All routes, in the order in which they are matched. */
  readonly routes: readonly Route<Context>[]
  /** Throws a `TypeError` if the routes cannot be served with this context and option `authenticate`. */
  checkMount?(context: Context, authenticate: unknown): void
  /** Answers a request that matches no route: 405 for another method on the path of a route, 404 for any other path. */
  handleUnmatched(request: HttpRequest, context: Context): HttpResponse
}

export interface Match<Context> {
  readonly route: Route<Context>
  readonly params: Readonly<Record<string, string>>
}

/** Matches methods and paths, for servers without a router, such as plain Node. */
export interface RouteMatcher<Context> {
  /** `HEAD` matches a `GET` route. */
  match(method: string, path: string): Match<Context> | undefined
  /** Returns the methods of all routes with this path. */
  methodsOf(path: string): readonly Method[]
}

/** Returns a path prefix without a slash at the end. Throws a `TypeError` for anything but a path, such as a pattern. */
export function checkPrefix(prefix = ''): string {
  if (!/^(\/[^/?#%:*{}()[\]\\]+)*\/?$/.test(prefix))
    throw new TypeError(
      `Expected \`prefix\` to be a path such as '/llm', without parameters, got '${prefix}'`,
    )
  return prefix.replace(/\/$/, '')
}

/** Returns the path below a prefix, which is `/` for the prefix itself. Returns undefined for any other path. */
export function pathBelow(prefix: string, path: string): string | undefined {
  // At the root, a target may lack the slash: `OPTIONS *`.
  if (prefix === '') return path
  if (path === prefix) return '/'
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined
}

export function createMatcher<Context>(routes: readonly Route<Context>[]): RouteMatcher<Context> {
  const compiled = routes.map((route) => ({ route, matches: match(route.path, { sensitive: true }) }))

  return {
    match: (method, path) => {
      const wanted = method === 'HEAD' ? 'GET' : method
      for (const { route, matches } of compiled) {
        if (route.method !== wanted && route.method !== method) continue
        const found = matchesDecoded(matches, path)
        if (found) return { route, params: joinParams(found.params) }
      }
      return undefined
    },
    methodsOf: (path) =>
      compiled.filter(({ matches }) => matchesDecoded(matches, path)).map(({ route }) => route.method),
  }
}

/** A path that cannot be percent-decoded matches no route. */
function matchesDecoded(matches: MatchFunction<ParamData>, path: string): ReturnType<typeof matches> {
  try {
    return matches(path)
  } catch {
    return false
  }
}

/** The response of a server without a router to a request that is not below the prefix of its routes. */
export const outsidePrefix = (prefix: string): HttpResponse =>
  text(`Not found. Expected a path below ${prefix}.`, 404)

/** Lists the methods of each path. */
export function methodsByPath<Context>(
  routes: readonly Route<Context>[],
): ReadonlyMap<string, readonly Method[]> {
  const methods = new Map<string, Method[]>()
  for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method])
  return methods
}

/** Converts parameters to strings. Some routers pass a wildcard as an array, which is joined with `/`. */
export function joinParams(params: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join('/') : String(value),
    ]),
  )
}
