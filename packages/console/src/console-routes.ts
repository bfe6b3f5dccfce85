/**
 * The routes of the console: its pages, `session`, and below `admin` and `llm` the admin API and the public APIs, for
 * the browser of a viewer who has logged in.
 */
import { adminRoutes, type Llm, LlmError, routesFor } from '@modelmount/core'
import { type DialectTable, internals } from '@modelmount/core/adapter'
import type { HttpRequest, HttpResponse, Route } from '@modelmount/core/http'
import type { LoginLinks } from './login-links.ts'
import { pageRoutes } from './pages.ts'
import { securityHeaders } from './security-headers.ts'
import { checkCsrf } from './session-cookie.ts'
import { sessionRoutes } from './session-routes.ts'
import { findViewer } from './viewer.ts'

/** Options of the console that all frameworks share. */
export interface ConsoleOptions {
  /**
   * URL of the public APIs as clients call it, such as `https://api.example.com/llm`, for the code that the playground
   * shows.
   *
   * @default the origin of the console
   */
  readonly apiUrl?: string | undefined
  /** Accepts one-time login links, which the app creates. @default none */
  readonly loginLinks?: LoginLinks | undefined
}

/**
 * Returns the routes of the console. Mount them below a separate path, such as `/console`. `checkMount` throws a
 * `TypeError` if no viewer could log in.
 */
export function consoleRoutes({ apiUrl, loginLinks }: ConsoleOptions = {}): DialectTable {
  const admin = adminRoutes()
  const tables = { '/admin': admin, '/llm': routesFor() }
  let isHost = false
  const below = (prefix: string, table: DialectTable): readonly Route<Llm>[] =>
    table.routes.map((route) => ({
      ...route,
      path: prefix + route.path,
      handle: async (request, llm) => {
        const inner = viewedBy(request, llm, { prefix, isHost })
        try {
          llm[internals].access.checkSameOrigin(request)
          checkCsrf(request)
        } catch (cause) {
          return table.renderError(inner, LlmError.from(cause), llm)
        }
        return route.handle(inner, llm)
      },
    }))
  /** The API whose error format a client of this path expects. */
  const tableOf = ({ path }: HttpRequest): DialectTable => (path.startsWith('/llm/') ? tables['/llm'] : admin)
  const routes = [
    ...sessionRoutes({ apiUrl, loginLinks, isHost: () => isHost }),
    ...Object.entries(tables).flatMap(([prefix, table]) => below(prefix, table)),
    ...pageRoutes(),
  ]
  return {
    routes: routes.map(withSecurityHeaders),
    checkMount: (llm, authenticate) => {
      isHost = authenticate !== undefined
      checkLogins(llm, isHost, loginLinks)
      llm[internals].liveCalls.listen()
    },
    handleUnmatched: (request, llm) => secure(tableOf(request).handleUnmatched(request, llm)),
    renderError: (request, error, llm) => secure(tableOf(request).renderError(request, error, llm)),
  }
}

/** Returns the request as the routes below the prefix see it: the viewer is its caller. */
const viewedBy = (
  request: HttpRequest,
  llm: Llm,
  { prefix, isHost }: { readonly prefix: string; readonly isHost: boolean },
): HttpRequest => ({
  ...request,
  path: request.path.slice(prefix.length),
  baseUrl: () => {
    const url = request.baseUrl()
    return url && url + prefix
  },
  findCaller: () => findViewer(request, llm, isHost),
})

const withSecurityHeaders = (route: Route<Llm>): Route<Llm> => ({
  ...route,
  handle: async (request, llm) => secure(await route.handle(request, llm)),
})

/** Data of a viewer stays out of caches. The files of the pages have a rule of their own. */
const secure = (response: HttpResponse): HttpResponse => ({
  ...response,
  headers: { 'cache-control': 'no-store', ...response.headers, ...securityHeaders },
})

function checkLogins(llm: Llm, isHost: boolean, loginLinks: LoginLinks | undefined): void {
  const { auth } = llm[internals].access
  if (isHost || auth === 'keys' || (auth === 'anonymous' && loginLinks)) return
  throw new TypeError(
    "No viewer could log in to the console: expected the option `authenticate`, which returns the caller of a request and its scopes, or createLlm({ auth: 'keys' })",
  )
}
