/**
 * Creates controllers from the route table, so that guards, interceptors, prefixes and logs of the app apply
 * to our routes.
 */
import { adminRoutes, type Caller, type DialectName, type Llm, routesFor } from '@modelmount/core'
import { type DialectTable, dialectNames, toBytes } from '@modelmount/core/adapter'
import {
  type AuthenticateContext,
  type AuthenticateOptions,
  checkPublicUrl,
  createAuthenticator,
  type HttpRequest,
  type HttpResponse,
  methodsByPath,
  type NodeRequestOptions,
} from '@modelmount/core/http'
import {
  Controller,
  Inject,
  Req,
  RequestMapping,
  RequestMethod,
  Res,
  type Type,
  UseFilters,
  VERSION_NEUTRAL,
} from '@nestjs/common'
import { dialectExceptionFilter } from './dialect-exception.filter.ts'
import { markRoute } from './fastify-routes.ts'
import { type LlmRequest, readRequest } from './llm.request.ts'
import { type LlmResponse, toResult } from './llm.response.ts'
import { LLM } from './llm.tokens.ts'

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

type Answer = (request: HttpRequest, llm: Llm) => HttpResponse | Promise<HttpResponse>

/**
 * Returns one controller for each of `dialects`, then one for other methods and unknown paths. With
 * `adminPath`, the controller of the admin API comes first.
 */
export function controllersFor(options: LlmRouteOptions): Type[] {
  const { path = '', adminPath, dialects = dialectNames, cloudRoutes, bodyLimit = '32mb' } = options
  const { unknownRoutes = /^\/*$/.test(path) ? 'pass' : 'error' } = options
  const table = routesFor(dialects, { cloudRoutes })
  const { routes, handleUnmatched } = table
  const methods = methodsByPath(routes)
  // Checked now, so that an invalid option fails the set-up instead of each request.
  const limitBytes = toBytes(bodyLimit)
  const publicUrl = checkPublicUrl(options.publicUrl)
  const authenticate = createAuthenticator<LlmRequest>(options)

  const controller = (name: string, at = path): Type<LlmController> => {
    // Nest logs the routes under the name of the class.
    const controllerClass = { [name]: class extends LlmController {} }[name] as Type<LlmController>
    Controller({ path: at, version: VERSION_NEUTRAL })(controllerClass) // Our paths contain their own version.
    return controllerClass
  }

  const addRoute = (
    { prototype }: Type<LlmController>,
    method: keyof typeof RequestMethod,
    pattern: string,
    answer: Answer,
    { renderError }: Pick<DialectTable, 'renderError'> = table,
    served: readonly string[] = [],
  ): void => {
    const key = `${method} ${pattern}`
    const value = async function (this: LlmController, req: LlmRequest, res: LlmResponse) {
      const request = readRequest(req, res, pattern, {
        bodyLimit: limitBytes,
        publicUrl,
        authenticate: (disconnected) => authenticate(req, disconnected),
      })
      return toResult(await answer(request, this.llm), res, request.signal)
    }
    const descriptor = { value, writable: true, configurable: true }

    Object.defineProperty(prototype, key, descriptor)
    RequestMapping({ path: pattern, method: RequestMethod[method] })(prototype, key, descriptor)
    markRoute(served)(prototype, key, descriptor)
    UseFilters(dialectExceptionFilter(renderError, pattern))(prototype, key, descriptor)
    Req()(prototype, key, 0)
    Res({ passthrough: true })(prototype, key, 1)
  }

  // A path that two dialects share is in the controller of the first.
  const ownerOf = (path: string): DialectName | undefined =>
    dialects.find((name) =>
      routesFor([name], { cloudRoutes: name === 'ollama' && cloudRoutes }).routes.some(
        (route) => route.path === path,
      ),
    )
  const dialectControllers = dialects.map((name) => {
    const controllerClass = controller(`${name[0]?.toUpperCase()}${name.slice(1)}Controller`)
    const own = routes.filter((route) => ownerOf(route.path) === name)
    for (const { method, path, handle } of own) addRoute(controllerClass, method, path, handle)
    return controllerClass
  })

  const unroutedController = controller('UnroutedController')
  if (unknownRoutes === 'error') {
    for (const [pattern, allowed] of methods)
      addRoute(
        unroutedController,
        'ALL',
        pattern,
        (request, llm) => handleUnmatched(request, allowed, llm),
        table,
        allowed,
      )
    // Two patterns: the wildcard does not match the mount point itself.
    for (const pattern of ['/', '/*path'])
      addRoute(unroutedController, 'ALL', pattern, (request, llm) => handleUnmatched(request, [], llm))
  }
  return [
    ...(adminPath === undefined ? [] : [adminController(adminPath)]),
    ...dialectControllers,
    unroutedController,
  ]

  function adminController(at: string): Type<LlmController> {
    const controllerClass = controller('LlmAdminController', at)
    const adminTable = adminRoutes()
    for (const { method, path, handle } of adminTable.routes)
      addRoute(controllerClass, method, path, handle, adminTable)
    for (const [pattern, allowed] of methodsByPath(adminTable.routes))
      addRoute(
        controllerClass,
        'ALL',
        pattern,
        (request, llm) => adminTable.handleUnmatched(request, allowed, llm),
        adminTable,
        allowed,
      )
    addRoute(
      controllerClass,
      'ALL',
      '/*path',
      (request, llm) => adminTable.handleUnmatched(request, [], llm),
      adminTable,
    )
    return controllerClass
  }
}

class LlmController {
  readonly llm: Llm

  constructor(@Inject(LLM) llm: Llm) {
    this.llm = llm
  }
}
