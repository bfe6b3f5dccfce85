/** Serves routes on platforms with web `Request` and `Response`, such as Hono, Bun, Deno and Next. */
import { checkFunction, checkKeys } from '../options/check.ts'
import { type ByteSize, toBytes } from '../units.ts'
import { type AuthenticateOptions, createAuthenticator } from './authenticate.ts'
import { checkPublicUrl } from './base-url.ts'
import { type BodySource, readBytes, readJson } from './body.ts'
import { defaultBodyLimit, type HttpRequest, type HttpResponse, type ResponseFrames } from './message.ts'
import { checkPrefix, createMatcher, outsidePrefix, pathBelow, type RouteTable } from './route.ts'

export type FetchHandler = (request: Request) => Promise<Response>

/** Callbacks that return what a web `Request` does not contain. */
export interface FetchHandlerOptions extends AuthenticateOptions<Request> {
  /** Returns the client's IP address, without a port. */
  readonly remoteAddress?: (request: Request) => string | undefined
  /**
   * Returns the HTTP version, such as `1.1`. With `auth: 'anonymous'`, HTTP/1.0 reveals a proxy on this machine.
   * So return it if clients can reach a plain proxy in front of this server.
   */
  readonly httpVersion?: (request: Request) => string | undefined
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
  readonly fallback?: ((request: Request) => Response | Promise<Response>) | undefined
  /** URL of the routes, as clients call it. @default the origin of each request, and `prefix` */
  readonly publicUrl?: string | undefined
}

const optionNames = [
  ...['remoteAddress', 'httpVersion', 'prefix', 'fallback', 'publicUrl'],
  ...['authenticate', 'authenticateTimeout'],
]

/**
 * Creates a handler that also responds to unknown paths and methods. Throws a `TypeError` for an invalid option.
 *
 * @param context the `Llm`, if the routes are those of `routesFor()`
 */
export function toFetchHandler<Context>(
  { routes, handleUnmatched }: RouteTable<Context>,
  context: Context,
  options: FetchHandlerOptions = {},
): FetchHandler {
  checkKeys('', options, optionNames)
  const authenticate = createAuthenticator(options)
  const publicUrl = checkPublicUrl(options.publicUrl)
  const prefix = checkPrefix(options.prefix)
  const { fallback } = options
  checkFunction('fallback', fallback)
  const match = createMatcher(routes)

  return async (request) => {
    const { pathname, origin } = new URL(request.url)
    const path = pathBelow(prefix, pathname)
    if (path === undefined) return fallback ? fallback(request) : toResponse(outsidePrefix(prefix))
    const found = match(request.method, path)
    if (fallback && prefix === '' && !('route' in found)) return fallback(request)
    const over = new AbortController()
    const signal = AbortSignal.any([request.signal, over.signal])
    const parts = {
      signal,
      disconnect: () => over.abort(),
      path,
      remoteAddress: options.remoteAddress?.(request),
      httpVersion: options.httpVersion?.(request),
      baseUrl: () => publicUrl ?? origin + prefix,
      authenticate: () => authenticate(request, signal),
    }
    if (!('route' in found))
      return toResponse(handleUnmatched(readFetchRequest(request, parts), found.allowed, context))
    const { route, params } = found
    const { bodyLimit } = route
    const response = await route.handle(readFetchRequest(request, { ...parts, params, bodyLimit }), context)
    return toResponse(response, over)
  }
}

type PassedParts = Pick<HttpRequest, 'path' | 'remoteAddress' | 'httpVersion' | 'signal' | 'baseUrl'> &
  Required<Pick<HttpRequest, 'disconnect' | 'authenticate'>>

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
    json: (defaultBody, allowance) => readJson(sourceOf(request), toBytes(bodyLimit), defaultBody, allowance),
    bytes: (allowance) => readBytes(sourceOf(request), allowance),
    jsonBytes: (allowance) => readBytes(sourceOf(request), allowance),
  }
}

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
