/** Serves routes on platforms with web `Request` and `Response`, such as Hono, Bun, Deno and Next. */
import { type ByteSize, toBytes } from '../units.ts'
import { type AuthenticateContext, createAuthenticator } from './authenticate.ts'
import { type BodySource, readBytes, readJson, readParsedBody, readParsedBytes } from './body.ts'
import { checkHandler, type HandlerOptions } from './handler-options.ts'
import {
  type BodyAllowance,
  defaultBodyLimit,
  type HttpRequest,
  type HttpResponse,
  type ResponseFrames,
} from './message.ts'
import { outsidePrefix, pathBelow, type RouteTable } from './route.ts'

/**
 * Answers a request of the fetch API: by a route, else by `fallback`, else with an error in the client's dialect.
 *
 * @typeParam Extra what the server passes beside a request: Hono's context, the server of Bun, the info of Deno
 */
export type FetchHandler<Extra = unknown> = (
  request: Request,
  ...extra: unknown extends Extra ? [extra?: unknown] : [extra: Extra]
) => Promise<Response>

/** Callbacks that return what a web `Request` does not contain. Each gets the second argument of the handler, too. */
export interface FetchHandlerOptions<Extra = unknown>
  extends HandlerOptions<
    Request,
    (request: Request, extra: Extra) => Response | Promise<Response>,
    AuthenticateContext & { readonly extra: Extra }
  > {
  /** Returns the client's IP address, without a port. */
  readonly remoteAddress?: ((request: Request, extra: Extra) => string | undefined) | undefined
  /**
   * Returns the HTTP version, such as `1.1`. With `auth: 'anonymous'`, HTTP/1.0 reveals a proxy on this machine.
   * So return it if clients can reach a plain proxy in front of this server.
   */
  readonly httpVersion?: ((request: Request, extra: Extra) => string | undefined) | undefined
}

/**
 * Creates a handler that also responds to unknown paths and methods. Throws a `TypeError` for an invalid option.
 *
 * @param context the `Llm`, if the routes are those of `routesFor()`
 */
export function toFetchHandler<Context, Extra = unknown>(
  table: RouteTable<Context>,
  context: Context,
  options: FetchHandlerOptions<Extra> = {},
): FetchHandler<Extra> {
  const { prefix, publicUrl, match } = checkHandler(table, context, options, ['remoteAddress', 'httpVersion'])
  const { fallback } = options
  const authenticate = createAuthenticator<[Request, Extra]>({
    authenticateTimeout: options.authenticateTimeout,
    authenticate: ([request, extra], { signal }) => options.authenticate?.(request, { signal, extra }),
  })

  return async (request, ...[given]) => {
    const extra = given as Extra
    const { pathname, origin } = new URL(request.url)
    const path = pathBelow(prefix, pathname)
    if (path === undefined) return fallback ? fallback(request, extra) : toResponse(outsidePrefix(prefix))
    const found = match(request.method, path)
    if (fallback && prefix === '' && !found) return fallback(request, extra)
    const over = new AbortController()
    const signal = AbortSignal.any([request.signal, over.signal])
    const parts = {
      signal,
      disconnect: () => over.abort(),
      path,
      remoteAddress: options.remoteAddress?.(request, extra),
      httpVersion: options.httpVersion?.(request, extra),
      baseUrl: () => publicUrl ?? origin + prefix,
      originalPath: pathname,
      authenticate: () => authenticate([request, extra], signal),
    }
    if (!found) return toResponse(table.handleUnmatched(readFetchRequest(request, parts), context))
    const { route, params } = found
    const { bodyLimit } = route
    const response = await route.handle(readFetchRequest(request, { ...parts, params, bodyLimit }), context)
    return toResponse(response, over)
  }
}

type PassedParts = Pick<HttpRequest, 'path' | 'remoteAddress' | 'httpVersion' | 'signal' | 'baseUrl'> &
  Required<Pick<HttpRequest, 'disconnect' | 'authenticate' | 'originalPath'>>

interface FetchRequestParts extends PassedParts {
  readonly params?: HttpRequest['params']
  readonly bodyLimit?: ByteSize | undefined
}

function readFetchRequest(
  request: Request,
  { params = {}, bodyLimit = defaultBodyLimit, ...parts }: FetchRequestParts,
): HttpRequest {
  return {
    ...parts,
    method: request.method,
    params,
    // Some platforms leave the header out.
    ...(!request.headers.has('host') && { host: new URL(request.url).host }),
    headerNames: () => [...request.headers.keys()],
    header: (name) => request.headers.get(name) ?? undefined,
    query: (name) => new URL(request.url).searchParams.get(name) ?? undefined,
    queryAll: (name) => new URL(request.url).searchParams.getAll(name),
    json: async (defaultBody, allowance) =>
      request.bodyUsed
        ? readParsedBody(undefined)
        : readJson(sourceOf(request), toBytes(bodyLimit), defaultBody, allowance),
    bytes: (allowance) => readUnusedBytes(request, allowance),
    jsonBytes: (allowance) => readUnusedBytes(request, allowance),
  }
}

const readUnusedBytes = (request: Request, allowance?: BodyAllowance): AsyncIterable<Uint8Array> =>
  request.bodyUsed ? readParsedBytes(undefined) : readBytes(sourceOf(request), allowance)

const sourceOf = ({ body, headers }: Request): BodySource => ({
  chunks: body ?? emptyStream(),
  contentLength: headers.get('content-length'),
  contentEncoding: headers.get('content-encoding'),
})

async function* emptyStream(): AsyncGenerator<Uint8Array> {}

/** @param over aborted when the stream is over. If other code aborts it, the stream breaks */
function toResponse({ status, headers, body }: HttpResponse, over = new AbortController()): Response {
  const content = body === null || typeof body === 'string' ? body : toStream(body, over)
  return new Response(content, { status, headers })
}

/** Pulls one frame at a time. Cancelling the stream does not wait for the pending frame. */
function toStream(frames: ResponseFrames, over: AbortController): ReadableStream<Uint8Array> {
  const iterator = frames[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    start(controller) {
      const { signal } = over
      const close = (): void => {
        controller.error(signal.reason) // Does nothing if the stream has ended or the client has cancelled it.
        iterator.return?.().catch(() => {})
      }
      signal.addEventListener('abort', close, { once: true })
    },
    async pull(controller) {
      try {
        const { value, done } = await iterator.next()
        if (!done) return controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      over.abort()
    },
    cancel: () => over.abort(),
  })
}
