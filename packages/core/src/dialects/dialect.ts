/** The contract of a public API, and the one entry point of its requests. */
import { nanoid } from 'nanoid'
import type { Access } from '../accounts/auth/access.ts'
import type { Caller, Scope } from '../accounts/auth/caller.ts'
import type { RouteClient } from '../calls/client.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import type { Route } from '../http/route.ts'
import { limitHeaders as defaultLimitHeaders } from '../limits/headers.ts'
import { internals, type Llm } from '../llm.ts'

/** One authenticated request to a route. */
export interface RouteCall {
  readonly request: HttpRequest
  /** What the caller may use. */
  readonly llm: RouteClient
  readonly caller: Caller
  /** Logs an error that happens after the headers, and renders it as a frame. */
  onError(error: LlmError): string
}
/** @param app the whole `Llm`, for routes of the admin API only */
export type Handler = (call: RouteCall, app: Llm) => Promise<HttpResponse>

export interface DialectSpec<Name extends string> {
  readonly name: Name
  readonly routes: readonly (readonly [method: Method, path: string, handler: Handler, scope?: Scope])[]
  /** Whether a client uses this API, for paths that several APIs have or none has. Absent in the API that gets all others. */
  readonly isSpokenBy?: (request: HttpRequest) => boolean
  /** Text for `GET` of the mount point, where the app has no route of its own. */
  readonly home?: string
  /** The header in which this dialect's clients expect the id of a request. */
  readonly requestIdHeader: string
  /** Headers with the state of the limits. @default `x-ratelimit-*` */
  limitHeaders?(limits: readonly LimitStatus[]): Readonly<Record<string, string>>
  /** An error as this dialect's clients expect it, with status and headers. */
  renderError(error: LlmError, requestId: string): HttpResponse
  /** An error in a stream that has begun. */
  renderErrorFrame(error: LlmError, requestId: string): string
  /** Cross-origin headers; throws `permission` for pages that may not call. @default by the option `origins` */
  checkOrigin?: Access['checkOrigin']
}

export interface Dialect<Name extends string = string> {
  readonly name: Name
  readonly routes: readonly Route<Llm>[]
  readonly isSpokenBy: DialectSpec<Name>['isSpokenBy']
  readonly home: DialectSpec<Name>['home']
  readonly checkOrigin: DialectSpec<Name>['checkOrigin']
  /** For wrong methods and unknown paths. */
  renderError(error: LlmError): HttpResponse
}

/** The one place where requests are authenticated, errors are logged and rendered, and responses get their id and limit headers. */
export function defineDialect<Name extends string>(spec: DialectSpec<Name>): Dialect<Name> {
  const { name, routes, isSpokenBy, home, requestIdHeader, renderError, renderErrorFrame } = spec
  const { limitHeaders = defaultLimitHeaders, checkOrigin } = spec
  const withHeaders = (
    response: HttpResponse,
    requestId: string,
    extraHeaders: Readonly<Record<string, string>> = {},
  ): HttpResponse => ({
    ...response,
    headers: { ...response.headers, ...extraHeaders, [requestIdHeader]: requestId },
  })
  const createRequestId = (): string => `req_${nanoid()}`

  return {
    name,
    isSpokenBy,
    home,
    checkOrigin,
    renderError: (error) => {
      const requestId = createRequestId()
      return withHeaders(renderError(error, requestId), requestId)
    },
    routes: routes.map(([method, path, handler, scope = 'inference']) => ({
      method,
      path,
      async handle(request, llm) {
        const requestId = createRequestId()
        const { access, report, clientOf } = llm[internals]
        const onError = (error: LlmError): string => {
          report(error)
          return renderErrorFrame(error, requestId)
        }
        let corsHeaders: Readonly<Record<string, string>> = {}
        let client: RouteClient | undefined
        const respond = (response: HttpResponse): HttpResponse =>
          withHeaders(response, requestId, { ...limitHeaders(client?.limitStatus() ?? []), ...corsHeaders })
        try {
          corsHeaders = (checkOrigin ?? access.checkOrigin)(request)
          const caller = await access.authorize(request, scope)
          client = clientOf(caller, name)
          return respond(await handler({ request, llm: client, caller, onError }, llm))
        } catch (cause) {
          const error = LlmError.from(cause)
          // After an abort the client gets no response, and most errors are about the abort.
          if (!request.signal.aborted) report(error)
          return respond(renderError(error, requestId))
        }
      },
    })),
  }
}
