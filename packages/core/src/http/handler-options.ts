/** Options of handlers that bring their own router: `toNodeHandler()` and `toFetchHandler()`. */
import { checkFunction, checkKeys } from '../options/check.ts'
import type { AuthenticateContext, AuthenticateOptions } from './authenticate.ts'
import { checkPublicUrl } from './base-url.ts'
import { checkPrefix, createMatcher, type Match, type RouteTable } from './route.ts'

export interface HandlerOptions<Source, Fallback, AuthContext = AuthenticateContext>
  extends AuthenticateOptions<Source, AuthContext> {
  /**
   * Path of the routes, such as `/llm`, for servers and frameworks that pass the whole path.
   *
   * @default the root
   */
  readonly prefix?: string | undefined
  /**
   * Responds to requests outside of `prefix`. At the root, also responds to unknown paths, and to other methods on the
   * paths of the routes.
   *
   * @default responds with 404 or 405
   */
  readonly fallback?: Fallback | undefined
  /** URL of the routes, as clients call it. @default derived from each request, with `prefix` */
  readonly publicUrl?: string | undefined
}

interface CheckedHandler<Context> {
  readonly prefix: string
  readonly publicUrl: string | undefined
  match(method: string, path: string): Match<Context> | undefined
}

/**
 * Checks the arguments of a handler. Throws a `TypeError` for an invalid one.
 *
 * @param callbacks names of further options, which are functions
 */
export function checkHandler<Context>(
  table: RouteTable<Context>,
  context: Context,
  options: HandlerOptions<never, unknown, never>,
  callbacks: readonly string[] = [],
): CheckedHandler<Context> {
  if (!Array.isArray(table?.routes))
    throw new TypeError(
      'Expected routes as the first argument, and the Llm as the second: toFetchHandler(routesFor(), llm, options), or toNodeHandler()',
    )
  const functions = ['fallback', 'authenticate', ...callbacks]
  checkKeys('', options, ['prefix', 'publicUrl', 'authenticateTimeout', ...functions])
  for (const name of functions) checkFunction(name, (options as Record<string, unknown>)[name])
  table.checkMount?.(context, options.authenticate)
  return {
    prefix: checkPrefix(options.prefix),
    publicUrl: checkPublicUrl(options.publicUrl),
    match: createMatcher(table.routes).match,
  }
}
