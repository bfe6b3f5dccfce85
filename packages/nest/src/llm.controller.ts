/** The controllers of an `LlmModule`: those of the public APIs, and of the other routes that its options ask for. */
import { adminRoutes, type Caller, type DialectName, type Llm, routesFor } from '@modelmount/core'
import { type DialectTable, dialectNames, toBytes } from '@modelmount/core/adapter'
import {
  type AuthenticateContext,
  type AuthenticateOptions,
  checkPublicUrl,
  createAuthenticator,
  type NodeRequestOptions,
} from '@modelmount/core/http'
import {
  type HealthRouteOptions,
  healthRoutes,
  type MetricsRouteOptions,
  metricsRoutes,
} from '@modelmount/core/operations'
import type { Type } from '@nestjs/common'
import { type ControllerOptions, createController } from './create-controller.ts'
import type { LlmRequest } from './llm.request.ts'
import { routesController } from './summarize-routes.ts'

/** Which routes `LlmModule` mounts, and where. */
export interface LlmRouteOptions {
  /** The public APIs to serve. @default all */
  readonly dialects?: readonly DialectName[] | undefined
  /**
   * Whether to serve the routes of Ollama's cloud, such as `POST /api/me`. They report that no cloud is available.
   *
   * @default false
   */
  readonly cloudRoutes?: boolean | undefined
  /**
   * Whether to serve routes of llama.cpp's server: `POST /tokenize`, `/detokenize`, `/apply-template` and `/rerank`.
   *
   * @default false
   */
  readonly llamaServerRoutes?: boolean | undefined
  /**
   * Path prefix of the routes, after the global prefix of the app: `llm` mounts `/llm/v1/models`.
   *
   * @default none
   */
  readonly path?: string | undefined
  /**
   * Path of the admin API, after the global prefix of the app: `admin` mounts `/admin/keys`.
   *
   * @default not mounted
   */
  readonly adminPath?: string | undefined
  /**
   * Serves `/livez`, `/readyz` and `/startupz`, without authentication. `path` is their prefix, after the global prefix
   * of the app. The guards of the app apply to them, too.
   *
   * @default not mounted
   */
  readonly health?: true | (HealthRouteOptions & { readonly path?: string | undefined }) | undefined
  /**
   * Serves `GET /metrics` for Prometheus, for callers with the scope `admin:read`, and with `auth: 'anonymous'` for
   * direct calls from this machine. `path` is its prefix, after the global prefix of the app. Needs the package
   * `prom-client`.
   *
   * @default not mounted
   */
  readonly metrics?: true | (MetricsRouteOptions & { readonly path?: string | undefined }) | undefined
  /**
   * How to answer unknown paths, and other methods on our paths: `pass` leaves them to the app, `error` answers 404 or
   * 405 in the dialect of the client. Without a `path`, `error` also applies to the paths of modules that are imported
   * later. OPTIONS on our paths is always answered.
   *
   * @default `error` under a `path`, `pass` without one
   */
  readonly unknownRoutes?: 'pass' | 'error' | undefined
  /** The largest request body. On Express, it applies if the app has `bodyParser: false`. @default '32mb' */
  readonly bodyLimit?: NodeRequestOptions['bodyLimit']
  /**
   * URL of the routes as clients call it, with the prefixes: `https://api.example.com/llm`. Set it behind a proxy that
   * removes a part of the path.
   *
   * @default derived from each request
   */
  readonly publicUrl?: string | undefined
  /**
   * Returns the caller of a request. Required with `auth: 'host'`. The guards of the app run first, so the
   * request has the user that they found. Without a caller, the request gets 401.
   */
  authenticate?(
    request: LlmRequest,
    context: AuthenticateContext,
  ): Caller | null | undefined | Promise<Caller | null | undefined>
  /** How long `authenticate` may take. The request then gets 503. @default '10s' */
  readonly authenticateTimeout?: AuthenticateOptions<LlmRequest>['authenticateTimeout']
}

/** Returns the controller of the public APIs, and those of the admin API and of the health routes if they are asked for. */
export function controllersFor(options: LlmRouteOptions): Type[] {
  const { path = '', adminPath, health, metrics, dialects = dialectNames, bodyLimit = '32mb' } = options
  const { cloudRoutes, llamaServerRoutes } = options
  const { unknownRoutes = /^\/*$/.test(path) ? 'pass' : 'error' } = options
  // Checked now, so that an invalid option fails the set-up instead of each request.
  const requestOptions = { bodyLimit: toBytes(bodyLimit), publicUrl: checkPublicUrl(options.publicUrl) }
  const authenticate = createAuthenticator<LlmRequest>(options)

  const controllerOf = (
    name: string,
    path: string,
    table: DialectTable,
    more: Pick<ControllerOptions, 'unknownRoutes' | 'onLlm'> = {},
  ): Type =>
    createController({
      ...{ name: `${routesController} (${name})`, path, table, requestOptions, authenticate },
      ...more,
    })
  const checkMount = (table: DialectTable) => (llm: Llm) => table.checkMount(llm, options.authenticate)

  const table = routesFor(dialects, { cloudRoutes, llamaServerRoutes })
  const controllers = [controllerOf(dialects.join(', '), path, table, { unknownRoutes })]
  if (health) {
    const { path = '', ...routeOptions } = health === true ? {} : health
    controllers.unshift(controllerOf('health', path, healthRoutes(routeOptions)))
  }
  if (metrics) {
    const { path = '', ...routeOptions } = metrics === true ? {} : metrics
    const table = metricsRoutes(routeOptions)
    // The metrics count from the start of the app, and not from the first scrape.
    controllers.unshift(controllerOf('metrics', path, table, { onLlm: checkMount(table) }))
  }
  if (adminPath !== undefined) {
    const table = adminRoutes()
    // The running calls of `/activity` are those since the start.
    controllers.unshift(
      controllerOf('admin', adminPath, table, { unknownRoutes: 'error', onLlm: checkMount(table) }),
    )
  }
  return controllers
}
