/** All dialects as one route table. */
import { LlmError } from '../errors.ts'
import { preflightHeaders } from '../http/guard.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import { methodsByPath, type Route, type RouteTable } from '../http/route.ts'
import type { Llm } from '../llm.ts'
import type { DialectName } from './dialect.ts'
import { openai } from './openai/index.ts'

const dialects = { openai }

export const dialectNames = Object.keys(dialects) as readonly DialectName[]

export interface DialectTable extends RouteTable<Llm> {
  /** Says what an app throws in front of a route, in the words of the API that the client speaks. */
  refuse(request: HttpRequest, error: LlmError): HttpResponse
}

/** @param names which public APIs to speak; all when absent */
export function routesFor(names: readonly DialectName[] = dialectNames): DialectTable {
  const chosen = names.map((name) => {
    if (!Object.hasOwn(dialects, name))
      throw new TypeError(`Expected a dialect of ${Object.keys(dialects).join(', ')}, got '${name}'`)
    return dialects[name]
  })
  return {
    routes: withPreflights(chosen.flatMap(({ routes }) => routes)),
    unrouted: (request, routed) => {
      const allowed = allow(routed)
      const { headers, ...response } = openai.refuse(refusal(request, allowed))
      return { ...response, headers: allowed === '' ? headers : { ...headers, allow: allowed } }
    },
    refuse: (_request, error) => openai.refuse(error),
  }
}

/** Every path answers a browser that asks what it may send there. */
function withPreflights(routes: readonly Route<Llm>[]): readonly Route<Llm>[] {
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
          return openai.refuse(LlmError.from(cause))
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
    ? new LlmError('not_found', `Invalid URL (${method} ${path})`)
    : new LlmError('method_not_allowed', `${method} is not allowed on ${path}. Allowed: ${allowed}.`)
