/** Creates the controller of a route table, so that guards, interceptors, prefixes and logs of the app apply to its routes. */
import type { Caller, Llm } from '@modelmount/core'
import { type DialectTable, isLlm } from '@modelmount/core/adapter'
import type { HttpRequest, HttpResponse, NodeRequestOptions } from '@modelmount/core/http'
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

/** What `createController()` serves, and how. */
export interface ControllerOptions {
  /** Nest logs the routes under this name. */
  readonly name: string
  /** Path prefix of the routes, after the global prefix of the app. */
  readonly path: string
  /** The routes. */
  readonly table: DialectTable
  /** How to answer unknown paths: `pass` leaves them to the app. @default 'pass' */
  readonly unknownRoutes?: 'pass' | 'error' | undefined
  /** Largest request body, and URL of the routes as clients call it. */
  readonly requestOptions: Pick<NodeRequestOptions, 'bodyLimit' | 'publicUrl'>
  /** A function of `createAuthenticator()`. */
  readonly authenticate: (request: LlmRequest, disconnected: AbortSignal) => Promise<Caller | undefined>
  /** Called once per app, with its `Llm`. @default none */
  readonly onLlm?: ((llm: Llm) => void) | undefined
}

type Answer = (request: HttpRequest, llm: Llm) => HttpResponse | Promise<HttpResponse>

/**
 * Creates a controller class of Nest that serves routes of core, for modules of this and of other packages.
 */
export function createController(options: ControllerOptions): Type {
  const { name, path, table, unknownRoutes, requestOptions, authenticate, onLlm } = options
  const { routes, handleUnmatched, renderError } = table
  const controller = { [name]: class extends LlmController {} }[name] as Type<LlmController>
  Object.assign(controller, { onLlm })
  Controller({ path, version: VERSION_NEUTRAL })(controller) // Our paths contain their own version.
  const { prototype } = controller

  const addRoute = (method: keyof typeof RequestMethod, pattern: string, answer: Answer): void => {
    const key = `${method} ${pattern}`
    const value = async function (this: LlmController, req: LlmRequest, res: LlmResponse) {
      const request = readRequest(req, res, pattern, {
        ...requestOptions,
        authenticate: (disconnected) => authenticate(req, disconnected),
      })
      return toResult(await answer(request, this.llm), res, request.signal)
    }
    const descriptor = { value, writable: true, configurable: true }

    Object.defineProperty(prototype, key, descriptor)
    RequestMapping({ path: pattern, method: RequestMethod[method] })(prototype, key, descriptor)
    markRoute(pattern)(prototype, key, descriptor)
    UseFilters(dialectExceptionFilter(renderError, pattern))(prototype, key, descriptor)
    Req()(prototype, key, 0)
    Res({ passthrough: true })(prototype, key, 1)
  }

  for (const { method, path, handle } of routes) addRoute(method, path, handle)
  if (unknownRoutes !== 'error') return controller
  const hasHome = routes.some(({ path }) => path === '/')
  // Two patterns: the wildcard does not match the mount point itself. Fastify rejects `ALL` for a path that has a route.
  for (const pattern of hasHome ? ['/*path'] : ['/', '/*path']) addRoute('ALL', pattern, handleUnmatched)
  return controller
}

class LlmController {
  readonly llm: Llm
  static readonly onLlm: ((llm: Llm) => void) | undefined

  constructor(@Inject(LLM) llm: Llm) {
    this.llm = llm
    if (isLlm(llm)) (this.constructor as typeof LlmController).onLlm?.(llm)
  }
}
