/** What a public API is to us, and the one door through which its calls come. */
import { nanoid } from 'nanoid'
import type { Caller, Scope } from '../accounts/auth/caller.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import type { HttpRequest, HttpResponse, Method } from '../http/message.ts'
import type { Route } from '../http/route.ts'
import { limitHeaders as defaultLimitHeaders } from '../limits/headers.ts'
import type { Llm } from '../llm.ts'
import { withModelsOf } from './caller-models.ts'
import { watchCalls } from './watched-calls.ts'

export interface Call {
  readonly request: HttpRequest
  /** With the models of the caller only. */
  readonly llm: Llm
  readonly caller: Caller
  /** For what goes wrong after the headers: reports it, and says it as a frame. */
  onError(error: LlmError): string
}
export type Handler = (call: Call) => Promise<HttpResponse>

export interface DialectSpec<Name extends string> {
  readonly name: Name
  readonly routes: readonly (readonly [method: Method, path: string, handler: Handler, scope?: Scope])[]
  /**
   * Whether the client speaks this API, for what several have and for what none has.
   * Absent in the one that is left when no other is spoken.
   */
  readonly isSpokenBy?: (request: HttpRequest) => boolean
  /** What the mount point itself says to `GET`, as text, where the app has nothing there. */
  readonly home?: string
  /** The header under which this dialect's clients look for the id of their call. */
  readonly requestIdHeader: string
  /** Says how the limits stand of a call that came under any. @default `x-ratelimit-*` */
  limitHeaders?(limits: readonly LimitStatus[]): Readonly<Record<string, string>>
  /** Says an error the way this dialect's clients expect, status and headers included. */
  renderError(error: LlmError, requestId: string): HttpResponse
  /** The same in a stream that has already begun. */
  renderErrorFrame(error: LlmError, requestId: string): string
}

export interface Dialect<Name extends string = string> {
  readonly name: Name
  readonly routes: readonly Route<Llm>[]
  readonly isSpokenBy: DialectSpec<Name>['isSpokenBy']
  readonly home: DialectSpec<Name>['home']
  /** For what has no route: wrong methods and unknown paths. */
  renderError(error: LlmError): HttpResponse
}

/** The one place where calls are let in, errors are reported and become responses, and responses get their id. */
export function defineDialect<Name extends string>(spec: DialectSpec<Name>): Dialect<Name> {
  const { name, routes, isSpokenBy, home, requestIdHeader, renderError, renderErrorFrame } = spec
  const { limitHeaders = defaultLimitHeaders } = spec
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
    renderError: (error) => {
      const requestId = createRequestId()
      return withHeaders(renderError(error, requestId), requestId)
    },
    routes: routes.map(([method, path, handler, scope = 'inference']) => ({
      method,
      path,
      async handle(request, llm) {
        const requestId = createRequestId()
        const onError = (error: LlmError): string => {
          llm.report(error)
          return renderErrorFrame(error, requestId)
        }
        let corsHeaders: Readonly<Record<string, string>> = {}
        const { of: callsOf, limits } = watchCalls(llm, name)
        try {
          corsHeaders = llm.access.checkOrigin(request)
          const caller = await llm.access.authorize(request, scope)
          const call = { request, llm: withModelsOf(caller, callsOf(caller)), caller, onError }
          const response = await handler(call)
          return withHeaders(response, requestId, { ...limitHeaders(limits()), ...corsHeaders })
        } catch (cause) {
          const error = LlmError.from(cause)
          // Nobody hears of it any more, and it is mostly about that.
          if (!request.signal.aborted) llm.report(error)
          const limitStatusHeaders = limitHeaders(error.details.limits ?? limits())
          return withHeaders(renderError(error, requestId), requestId, {
            ...limitStatusHeaders,
            ...corsHeaders,
          })
        }
      },
    })),
  }
}
