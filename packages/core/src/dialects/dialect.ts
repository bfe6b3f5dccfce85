/** Defines dialects: HTTP APIs such as OpenAI's. Every request to a dialect starts here. */
import { type Access, AuthenticateError } from '../accounts/auth/access.ts'
import { type Caller, type Scope, tenantOf } from '../accounts/auth/caller.ts'
import type { RouteClient } from '../calls/client.ts'
import { publish } from '../diagnostics/channels.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import type { Route } from '../http/route.ts'
import { whenSent } from '../http/when-sent.ts'
import { limitHeaders as defaultLimitHeaders, type HeaderMap } from '../limits/headers.ts'
import { internals, type Llm } from '../llm.ts'
import { readForwardedCall } from './forwarded-call.ts'
import { requestIdOf } from './request-id.ts'

export { AuthenticateError }

/** A request to a model: to a route, or as an item of a batch. */
export interface ModelCall {
  readonly request: Pick<HttpRequest, 'json' | 'signal' | 'reserve'>
  /** The methods that the caller may use. */
  readonly llm: RouteClient
  /** Logs an error that occurs after the headers are sent, and renders it as a frame of the stream. */
  onError(error: LlmError): string
}
export type ModelHandler = (call: ModelCall) => Promise<HttpResponse>

/** One authenticated request to a route. */
export interface RouteCall extends ModelCall {
  readonly request: HttpRequest
  readonly caller: Caller
}
/** @param app the whole `Llm`, for routes of the admin API only */
export type Handler = (call: RouteCall, app: Llm) => Promise<HttpResponse>

export interface DialectSpec<Name extends string> {
  readonly name: Name
  readonly routes: readonly (readonly [method: Method, path: string, handler: Handler, scope?: Scope])[]
  /**
   * Whether a client of this dialect sent the request. Called if several dialects have the route, or if no
   * dialect has it. Absent in the default dialect.
   */
  readonly isSpokenBy?: (request: HttpRequest) => boolean
  /** Response text for `GET` of the mount point, unless the host app has a route for it. */
  readonly home?: string
  /** The header in which this dialect's clients expect the request id. */
  readonly requestIdHeader: string
  /** Headers with the state of the rate limits. @default `x-ratelimit-*` */
  limitHeaders?(limits: readonly LimitStatus[]): Readonly<Record<string, string>>
  /** Renders an error as this dialect's clients expect it, with status and headers. */
  renderError(error: LlmError, requestId: string): HttpResponse
  /** Renders an error as a frame of a stream that has begun. */
  renderErrorFrame(error: LlmError, requestId: string): string
  /** Whether pages of other origins are rejected, even if the option `origins` allows them. @default false */
  readonly sameOriginOnly?: boolean
}

export interface Dialect<Name extends string = string> {
  readonly name: Name
  readonly routes: readonly Route<Llm>[]
  readonly isSpokenBy: DialectSpec<Name>['isSpokenBy']
  readonly home: DialectSpec<Name>['home']
  /** Returns CORS headers. Throws `permission` for a page of a forbidden origin. */
  checkOrigin(request: HttpRequest, access: Access): HeaderMap
  /** Renders an error that occurs outside of a route, such as the error for an unknown path. */
  renderError(request: HttpRequest, error: LlmError): HttpResponse
}

/**
 * For a stalled client: the rest of its body is not read, so no other request can follow it (RFC 9110, 15.5.9). While
 * the app closes, for all clients: their next request then goes to another server.
 */
const closeConnection: HeaderMap = { connection: 'close' }

/**
 * Whether a response may close its connection. HTTP/2 forbids the header `connection`. A client that is still sending
 * its body might not get the response.
 */
const canClose = (request: HttpRequest, isBodyRead: boolean): boolean =>
  request.httpVersion?.startsWith('1.') === true &&
  (isBodyRead ||
    (request.header('transfer-encoding') === undefined &&
      Number(request.header('content-length') ?? 0) <= sentAtOnceBytes))

/** A body of this size fits into the buffers of a connection. */
const sentAtOnceBytes = 16 * 1024

/**
 * Creates a dialect. Its routes authenticate requests, log and render errors, and add the headers for the
 * request id, rate limits and CORS.
 */
export function defineDialect<Name extends string>(spec: DialectSpec<Name>): Dialect<Name> {
  const { name, routes, isSpokenBy, home, requestIdHeader, renderError, renderErrorFrame } = spec
  const { limitHeaders = defaultLimitHeaders, sameOriginOnly = false } = spec
  const withHeaders = (
    response: HttpResponse,
    requestId: string,
    extraHeaders: HeaderMap = {},
  ): HttpResponse => ({
    ...response,
    headers: { ...response.headers, ...extraHeaders, [requestIdHeader]: requestId },
  })
  const checkOrigin: Dialect['checkOrigin'] = (request, access) => {
    if (!sameOriginOnly) return access.checkOrigin(request)
    access.checkSameOrigin(request)
    return {}
  }

  return {
    name,
    isSpokenBy,
    home,
    checkOrigin,
    renderError: (request, error) => {
      const requestId = requestIdOf(request)
      return withHeaders(renderError(error, requestId), requestId)
    },
    routes: routes.map(([method, path, handler, scope = 'inference']) => ({
      method,
      path,
      async handle(request, llm) {
        const requestId = requestIdOf(request)
        const { access, bodies, report, clientOf, shutdown } = llm[internals]
        const onError = (error: LlmError): string => {
          report(error, { requestId })
          return renderErrorFrame(error, requestId)
        }
        let corsHeaders: HeaderMap = {}
        let client: RouteClient | undefined
        /** Tells the app that the request is over. Undefined before the request is admitted. */
        let leave: (() => void) | undefined
        const startedAt = performance.now()
        const respond = (
          response: HttpResponse,
          { headers = {}, error }: { readonly headers?: HeaderMap; readonly error?: LlmError } = {},
        ): HttpResponse => {
          publish('modelmount:request:end', () => ({
            ...{ llm, dialect: name, route: path, method, requestId, status: response.status },
            ...{ durationMs: performance.now() - startedAt, error },
          }))
          if (leave) whenSent(request, response, leave)
          return withHeaders(response, requestId, {
            ...limitHeaders(client?.limitStatus() ?? []),
            ...corsHeaders,
            ...(shutdown.isClosing && canClose(request, leave !== undefined) && closeConnection),
            ...headers,
          })
        }
        try {
          corsHeaders = checkOrigin(request, access)
          leave = shutdown.admit(request)
          const caller = await access.authorize(request, scope)
          const forwarded = readForwardedCall(request, (needed) => access.expectScope(caller, needed))
          const own = clientOf(caller, {
            dialect: name,
            route: path,
            requestId,
            header: request.header,
            disconnect: request.disconnect,
            forwarded,
          })
          client = own
          return respond(
            await bodies.run(request, forwarded?.tenant ?? tenantOf(caller), (request) =>
              handler({ request, llm: own, caller, onError }, llm),
            ),
          )
        } catch (cause) {
          if (cause instanceof AuthenticateError) {
            leave?.()
            throw cause.cause
          }
          const error = LlmError.from(cause)
          // Errors after an abort are not logged: most of them are caused by the abort.
          if (!request.signal.aborted) report(error, { requestId })
          const headers = error.code === 'timeout' ? closeConnection : {}
          return respond(renderError(error, requestId), { headers, error })
        }
      },
    })),
  }
}
