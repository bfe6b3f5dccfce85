/** Options that all framework adapters share. They are checked before any route is mounted. */
import { type AuthenticateOptions, type Authenticator, createAuthenticator } from '../http/authenticate.ts'
import { checkPublicUrl } from '../http/base-url.ts'
import { defaultBodyLimit } from '../http/message.ts'
import type { RouteTable } from '../http/route.ts'
import type { Llm } from '../llm.ts'
import { checkKeys } from '../options/check.ts'
import { type ByteSize, toBytes } from '../units.ts'
import { type HealthRouteOptions, healthRoutes } from './health/index.ts'
import { adminRoutes, type DialectName, routesFor } from './index.ts'
import { type MetricsRouteOptions, metricsRoutes } from './metrics/index.ts'
import type { DialectTable } from './table.ts'

/** Options of the public APIs, as all adapters have them. */
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
  /**
   * Whether to serve routes of llama.cpp's server: `POST /tokenize`, `/detokenize`, `/apply-template` and `/rerank`. At
   * the root, they could hide routes of the host app.
   *
   * @default false
   */
  readonly llamaServerRoutes?: boolean | undefined
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

/** The routes of one mount with its checked options, as adapters serve them. */
export interface Mount<Source = unknown> extends RouteTable<Llm> {
  /**
   * Whether requests that match no route pass to the host app.
   * @param prefix path of the mount point, empty at the root
   */
  passesUnmatched(prefix: string): boolean
  /** Largest request body, in bytes. */
  readonly bodyLimit: number
  /** URL of the routes as clients call it. Undefined if it is derived from each request. */
  readonly publicUrl: string | undefined
  /** Asks the host app for the caller of a request. */
  readonly authenticate: Authenticator<Source>
}

/** Options of the admin API. It has its own `authenticate`, and a body limit of 32 MB by default. */
export type AdminMountOptions<Source> = Omit<
  MountOptions<Source>,
  'dialects' | 'cloudRoutes' | 'llamaServerRoutes'
>

/** Checks the options of an adapter and returns its routes. Throws a `TypeError` for an invalid option. */
export function prepareMount<Source>(llm: Llm, options: MountOptions<Source>): Mount<Source> {
  checkKeys('', options, ['dialects', 'cloudRoutes', 'llamaServerRoutes', ...adminOptions])
  const { dialects, cloudRoutes, llamaServerRoutes } = options
  return prepare(llm, options, () => routesFor(dialects, { cloudRoutes, llamaServerRoutes }))
}

/** Checks the options of an admin API and returns its routes. Throws a `TypeError` for an invalid option. */
export function prepareAdminMount<Source>(llm: Llm, options: AdminMountOptions<Source>): Mount<Source> {
  checkKeys('', options, adminOptions)
  return prepare(llm, options, adminRoutes)
}

/** Options of the health routes. `authenticate` is needed only for `?verbose` and for further models in `?model=`. */
export type HealthMountOptions<Source> = HealthRouteOptions & AuthenticateOptions<Source>

/** Checks the options of health routes and returns these. Throws a `TypeError` for an invalid option. */
export function prepareHealthMount<Source>(llm: Llm, options: HealthMountOptions<Source>): Mount<Source> {
  checkKeys('', options, ['models', 'authenticate', 'authenticateTimeout'])
  const { models, ...mountOptions } = options
  // Other routers may be mounted at the same path.
  return prepare(llm, { ...mountOptions, unknownRoutes: 'pass' }, () => healthRoutes({ models }))
}

/** The registry of the metrics, and `authenticate` for those who read them. */
export type MetricsMountOptions<Source> = MetricsRouteOptions & AuthenticateOptions<Source>

/** Checks the options of the metrics and returns their route. Throws a `TypeError` for an invalid option. */
export function prepareMetricsMount<Source>(llm: Llm, options: MetricsMountOptions<Source>): Mount<Source> {
  checkKeys('', options, ['registry', 'authenticate', 'authenticateTimeout'])
  const { registry, ...mountOptions } = options
  return prepare(llm, { ...mountOptions, unknownRoutes: 'pass' }, () => metricsRoutes({ registry }))
}

/** Options of routes of another package. */
export type TableMountOptions<Source> = AdminMountOptions<Source>

/** Checks the options of routes of another package and returns these. Throws a `TypeError` for an invalid option. */
export const prepareTable = <Source>(
  llm: Llm,
  table: DialectTable,
  options: TableMountOptions<Source>,
): Mount<Source> => {
  checkKeys('', options, adminOptions)
  return prepare(llm, options, () => table)
}

const adminOptions = ['unknownRoutes', 'bodyLimit', 'publicUrl', 'authenticate', 'authenticateTimeout']

function prepare<Source>(
  llm: Llm,
  options: AdminMountOptions<Source>,
  routes: () => DialectTable,
): Mount<Source> {
  const { unknownRoutes, bodyLimit = defaultBodyLimit, authenticate } = options
  if (unknownRoutes !== undefined && !['pass', 'error'].includes(unknownRoutes))
    throw new TypeError(`Expected \`unknownRoutes\` to be 'pass' or 'error', got '${unknownRoutes}'`)
  const table = routes()
  table.checkMount(llm, authenticate)
  return {
    ...table,
    passesUnmatched: (prefix) => (unknownRoutes ?? (prefix === '' ? 'pass' : 'error')) === 'pass',
    bodyLimit: toBytes(bodyLimit),
    publicUrl: checkPublicUrl(options.publicUrl),
    authenticate: createAuthenticator(options),
  }
}
