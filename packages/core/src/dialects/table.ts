/** Several dialects as one route table. */
import { LlmError } from '../errors.ts'
import { preflightHeaders } from '../http/guard.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import { text } from '../http/respond.ts'
import { methodsByPath, type Route, type RouteTable } from '../http/route.ts'
import type { Llm } from '../llm.ts'
import type { Dialect } from './dialect.ts'

export interface DialectTable extends RouteTable<Llm> {
  /** Says what an app throws in front of a route, in the words of the API that the client speaks. */
  refuse(request: HttpRequest, error: LlmError): HttpResponse
}

/** @param chosen at least one */
export function tableOf(chosen: readonly Dialect[]): DialectTable {
  const refuse = (request: HttpRequest, error: LlmError): HttpResponse =>
    speakerOf(request, chosen).refuse(error)
  return {
    routes: withPreflights(withoutDoubles(chosen), refuse),
    unrouted: (request, routed, llm) => {
      try {
        llm.access.crossOrigin(request)
      } catch (cause) {
        return refuse(request, LlmError.from(cause))
      }
      const home = chosen.find((dialect) => dialect.home !== undefined)?.home
      const atHome = home !== undefined && routed.length === 0 && request.path === '/'
      if (atHome && (request.method === 'GET' || request.method === 'HEAD')) return text(home)
      const allowed = allow(atHome ? ['GET'] : routed)
      const { headers, ...response } = refuse(request, refusal(request, allowed))
      return { ...response, headers: allowed === '' ? headers : { ...headers, allow: allowed } }
    },
    refuse,
  }
}

/** Whose client asks: the dialect that knows it for its own, else the one that takes all others. */
const speakerOf = (request: HttpRequest, among: readonly Dialect[]): Dialect =>
  among.find(({ isSpokenBy }) => isSpokenBy?.(request)) ??
  among.find(({ isSpokenBy }) => !isSpokenBy) ??
  (among[0] as Dialect)

/** What two dialects have, such as `GET /v1/models`, is one route, and the client says whose answer it gets. */
function withoutDoubles(chosen: readonly Dialect[]): readonly Route<Llm>[] {
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
      handle: (request, llm) => routeOf(speakerOf(request, sharers)).handle(request, llm),
    }
  })
}

/** Every path answers a browser that asks what it may send there. */
function withPreflights(
  routes: readonly Route<Llm>[],
  refuse: DialectTable['refuse'],
): readonly Route<Llm>[] {
  const preflights = [...methodsByPath(routes)].map(([path, methods]): Route<Llm> => {
    const allowed = allow(methods)
    return {
      method: 'OPTIONS',
      path,
      handle: async (request, llm) => {
        try {
          const crossOrigin = llm.access.crossOrigin(request)
          const asked = 'access-control-allow-origin' in crossOrigin ? preflightHeaders(request, allowed) : {}
          return { status: 204, headers: { allow: allowed, ...crossOrigin, ...asked }, body: null }
        } catch (cause) {
          return refuse(request, LlmError.from(cause))
        }
      },
    }
  })
  return [...routes, ...preflights]
}

/** Every router answers HEAD by the route of GET. */
const allow = (methods: readonly Method[]): string =>
  methods
    .filter((method) => method !== 'OPTIONS')
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')

const refusal = ({ method, path }: HttpRequest, allowed: string): LlmError =>
  allowed === ''
    ? new LlmError('not_found', `Invalid URL (${method} ${path})`, { path })
    : new LlmError('method_not_allowed', `${method} is not allowed on ${path}. Allowed: ${allowed}.`)
