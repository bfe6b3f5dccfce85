/** Options that all framework adapters share. They are checked before any route is mounted. */
import { type AuthenticateOptions, type Authenticator, createAuthenticator } from '../http/authenticate.ts'
import { checkPublicUrl } from '../http/base-url.ts'
import { defaultBodyLimit } from '../http/message.ts'
import type { RouteTable } from '../http/route.ts'
import { internals, type Llm } from '../llm.ts'
import { checkKeys } from '../options/check.ts'
import { type ByteSize, toBytes } from '../units.ts'
import { adminRoutes, type DialectName, routesFor } from './index.ts'
import type { DialectTable } from './table.ts'

export interface MountOptions<Source> extends AuthenticateOptions<Source> {
  /** Public APIs to serve. @default all */
  readonly dialects?: readonly DialectName[] | undefined
  /**
   * How to respond to unknown paths, and to other methods on the paths of the routes. `pass` hands the request to the
   * following routes of the host app. `error` responds with 404 or 405 in the client's dialect. OPTIONS on a path of
   * the routes is always answered, because browsers send it before a call.
   *
   * @default `error` under a prefix, `pass` at the root
   */
  readonly unknownRoutes?: 'pass' | 'error' | undefined
  /**
   * Whether to serve the routes of Ollama's cloud, such as `POST /api/me`. They report that no cloud is available.
   * Some commands of the `ollama` client call them.
   *
   * @default false
   */
  readonly cloudRoutes?: boolean | undefined
  /** Largest request body, in bytes or with a unit, such as `'8mb'`. @default '32mb' */
  readonly bodyLimit?: ByteSize | undefined
  /**
   * URL of the routes as clients call it, such as `https://api.example.com/llm`, for absolute URLs in responses. Set
   * it behind a proxy that removes a part of the path.
   *
   * @default derived from each request: its protocol and host, as trusted proxies report them, and its path
   */
  readonly publicUrl?: string | undefined
}

export interface Mount<Source = unknown> extends RouteTable<Llm> {
  /**
   * Whether requests that match no route pass to the host app.
   * @param prefix path of the mount point, empty at the root
   */
  passesUnmatched(prefix: string): boolean
  readonly bodyLimit: number
  readonly publicUrl: string | undefined
  readonly authenticate: Authenticator<Source>
}

export type AdminMountOptions<Source> = Omit<MountOptions<Source>, 'dialects' | 'cloudRoutes'>

/** Checks the options of an adapter and returns its routes. Throws a `TypeError` for an invalid option. */
export function prepareMount<Source>(llm: Llm, options: MountOptions<Source>): Mount<Source> {
  checkKeys('', options, ['dialects', 'cloudRoutes', ...adminOptions])
  const { dialects, cloudRoutes } = options
  return prepare(llm, options, () => routesFor(dialects, { cloudRoutes }))
}

/** Checks the options of an admin API and returns its routes. Throws a `TypeError` for an invalid option. */
export function prepareAdminMount<Source>(llm: Llm, options: AdminMountOptions<Source>): Mount<Source> {
  checkKeys('', options, adminOptions)
  const mount = prepare(llm, options, adminRoutes)
  checkAdmin(llm)
  return mount
}

const adminOptions = ['unknownRoutes', 'bodyLimit', 'publicUrl', 'authenticate', 'authenticateTimeout']

function prepare<Source>(
  llm: Llm,
  options: AdminMountOptions<Source>,
  routes: () => DialectTable,
): Mount<Source> {
  if (typeof llm?.generate !== 'function')
    throw new TypeError(
      `Expected an Llm, got ${llm instanceof Promise ? 'a Promise: write `await createLlm()`' : String(llm)}`,
    )
  const { unknownRoutes, bodyLimit = defaultBodyLimit, authenticate } = options
  if (unknownRoutes !== undefined && !['pass', 'error'].includes(unknownRoutes))
    throw new TypeError(`Expected \`unknownRoutes\` to be 'pass' or 'error', got '${unknownRoutes}'`)
  checkAuthenticate(llm, authenticate)
  return {
    ...routes(),
    passesUnmatched: (prefix) => (unknownRoutes ?? (prefix === '' ? 'pass' : 'error')) === 'pass',
    bodyLimit: toBytes(bodyLimit),
    publicUrl: checkPublicUrl(options.publicUrl),
    authenticate: createAuthenticator(options),
  }
}

/** Throws a `TypeError` if `authenticate` is missing with `auth: 'host'`, or is set with another `auth`. */
export function checkAuthenticate(llm: Llm, authenticate: unknown): void {
  const { access } = llm[internals]
  if (access.auth === 'host' && !authenticate)
    throw new TypeError(
      "With `auth: 'host'`, expected the option `authenticate`, which returns the caller of a request: `authenticate: (req) => req.user && { id: req.user.id }`",
    )
  if (access.auth !== 'host' && authenticate)
    throw new TypeError(
      `The option \`authenticate\` would never be called, because \`auth\` is '${access.auth}': expected createLlm({ auth: 'host' }), or no \`authenticate\``,
    )
}

/** Throws a `TypeError` without a database, since the admin API manages the keys in it. */
export function checkAdmin({ keys }: Pick<Llm, 'keys'>): void {
  if (!keys.hasDatabase)
    throw new TypeError(
      'The admin API needs a database for its keys: expected the option `database` of createLlm()',
    )
}
