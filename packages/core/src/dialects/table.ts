/** Combines several dialects into one route table. */
import { LlmError } from '../errors.ts'
import { preflightHeaders } from '../http/guard.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import { text } from '../http/respond.ts'
import { createMatcher, methodsByPath, type Route, type RouteTable } from '../http/route.ts'
import { internals, type Llm } from '../llm.ts'
import { checkMount } from './check-mount.ts'
import type { Dialect } from './dialect.ts'

/** A table of routes that can render errors of earlier middleware. */
export interface DialectTable extends RouteTable<Llm> {
  checkMount(llm: Llm, authenticate: unknown): void
  /** Renders an error of earlier middleware in the client's dialect. Limits the time of a stalled client. */
  renderError(request: HttpRequest, error: LlmError, llm: Llm): HttpResponse
}

/** @param chosen at least one dialect */
export function createDialectTable(chosen: readonly Dialect[]): DialectTable {
  // The admin API, whose rule differs, is never combined with others.
  const { checkOrigin } = chosen[0] as Dialect
  const renderError: RenderError = (request, error) =>
    selectDialect(request, chosen).renderError(request, error)
  const routes = withPreflights(mergeSharedRoutes(chosen), renderError, checkOrigin).map(withStallLimits)
  const { match, methodsOf } = createMatcher(routes)
  // Some routers are stricter than ours and do not match a path with a slash at its end. For them, it is unknown.
  const otherMethods = ({ method, path }: HttpRequest): readonly Method[] =>
    match(method, path) ? [] : methodsOf(path)
  return {
    checkMount,
    routes,
    handleUnmatched: (request, llm) => {
      request.closeIfStalled?.(llm[internals].stallLimits)
      try {
        checkOrigin(request, llm[internals].access)
      } catch (cause) {
        return renderError(request, LlmError.from(cause))
      }
      const home = chosen.find((dialect) => dialect.home !== undefined)?.home
      const isHome = home !== undefined && request.path === '/'
      if (isHome && (request.method === 'GET' || request.method === 'HEAD')) return text(home)
      const allowed = toAllowHeader(isHome ? ['GET'] : otherMethods(request))
      const { headers, ...response } = renderError(request, createRoutingError(request, allowed))
      return { ...response, headers: allowed === '' ? headers : { ...headers, allow: allowed } }
    },
    renderError: (request, error, llm) => {
      request.closeIfStalled?.(llm[internals].stallLimits)
      return renderError(request, error)
    },
  }
}

type RenderError = (request: HttpRequest, error: LlmError) => HttpResponse

/** Selects the dialect that recognises the client, or else the default dialect. */
const selectDialect = (request: HttpRequest, among: readonly Dialect[]): Dialect =>
  among.find(({ isSpokenBy }) => isSpokenBy?.(request)) ??
  among.find(({ isSpokenBy }) => !isSpokenBy) ??
  (among[0] as Dialect)

/** Merges routes of several dialects, such as `GET /v1/models`. The handler selects a dialect per request. */
function mergeSharedRoutes(chosen: readonly Dialect[]): readonly Route<Llm>[] {
  const owners = new Map<string, Dialect[]>()
  const keyOf = ({ method, path }: Route<Llm>): string => `${method} ${path}`
  for (const dialect of chosen) {
    for (const route of dialect.routes) {
      const key = keyOf(route)
      owners.set(key, [...(owners.get(key) ?? []), dialect])
    }
  }
  return [...owners].map(([key, sharers]) => {
    const routeOf = ({ routes }: Dialect) => routes.find((route) => keyOf(route) === key) as Route<Llm>
    const route = routeOf(sharers[0] as Dialect)
    if (sharers.length === 1) return route
    return {
      ...route,
      handle: (request, llm) => routeOf(selectDialect(request, sharers)).handle(request, llm),
    }
  })
}

/** Adds a CORS preflight route for each path. */
function withPreflights(
  routes: readonly Route<Llm>[],
  renderError: RenderError,
  checkOrigin: Dialect['checkOrigin'],
): readonly Route<Llm>[] {
  const preflights = [...methodsByPath(routes)].map(([path, methods]): Route<Llm> => {
    const allowed = toAllowHeader(methods)
    return {
      method: 'OPTIONS',
      path,
      handle: async (request, llm) => {
        try {
          const crossOrigin = checkOrigin(request, llm[internals].access)
          const preflight =
            'access-control-allow-origin' in crossOrigin ? preflightHeaders(request, allowed) : {}
          return { status: 204, headers: { allow: allowed, ...crossOrigin, ...preflight }, body: null }
        } catch (cause) {
          return renderError(request, LlmError.from(cause))
        }
      },
    }
  })
  return [...routes, ...preflights]
}

/** Limits how long a client may take for the response and for a body that the route does not read. */
const withStallLimits = (route: Route<Llm>): Route<Llm> => ({
  ...route,
  handle: async (request, llm) => {
    const response = await route.handle(request, llm)
    request.closeIfStalled?.(llm[internals].stallLimits)
    return response
  },
})

/** Value of the `allow` header. Adds HEAD to GET, since routers serve HEAD with the route of GET. */
const toAllowHeader = (methods: readonly Method[]): string =>
  methods
    .filter((method) => method !== 'OPTIONS')
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')

const createRoutingError = ({ method, path }: HttpRequest, allowed: string): LlmError =>
  allowed === ''
    ? new LlmError('not_found', `Invalid URL (${method} ${path})`, { path })
    : new LlmError('method_not_allowed', `${method} is not allowed on ${path}. Allowed: ${allowed}.`)
