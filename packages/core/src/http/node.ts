/** Converts between Node's HTTP objects and core's, for adapters of frameworks on `node:http`. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Caller } from '../accounts/auth/caller.ts'
import { LlmError } from '../errors.ts'
import { type ByteSize, toBytes } from '../units.ts'
import { createAuthenticator } from './authenticate.ts'
import { toBaseUrl } from './base-url.ts'
import { readNodeBytes, readNodeJson, readParsedBody, readParsedBytes, readParsedJsonBytes } from './body.ts'
import { checkHandler, type HandlerOptions } from './handler-options.ts'
import { defaultBodyLimit, type HttpRequest, type HttpResponse } from './message.ts'
import { joinParams, type Match, outsidePrefix, pathBelow, type RouteTable } from './route.ts'
import { closeIfStalled } from './stalled-connection.ts'

/** What `readNodeRequest()` cannot know from Node's request alone. */
export interface NodeRequestOptions {
  /** Path below the mount point, without the query string. */
  readonly path: string
  /** Path parameters, as the router of the framework has found them. @default {} */
  readonly params?: Readonly<Record<string, unknown>>
  /** Result of an earlier body parser. Used only if the request stream has been read. @default none */
  readonly parsedBody?: unknown
  /** Largest request body, in bytes or with a unit. @default '32mb' */
  readonly bodyLimit?: ByteSize | undefined
  /**
   * Address of the client, as a proxy that the host app trusts reports it.
   *
   * @default the address of the connection
   */
  readonly clientAddress?: string | undefined
  /**
   * Host name and port that the client called, as a proxy that the host app trusts reports them.
   *
   * @default the header `host`
   */
  readonly host?: string | undefined
  /**
   * `http` or `https`, as a proxy that the host app trusts reports it.
   *
   * @default the protocol of the connection
   */
  readonly protocol?: string | undefined
  /** Path of the request before any router removed a prefix. @default `req.originalUrl`, else `req.url` */
  readonly originalUrl?: string | undefined
  /** URL of the mount point, as clients call it. @default derived from each request */
  readonly publicUrl?: string | undefined
  /**
   * Asks the host app for the caller: a function of `createAuthenticator()`, with its first argument.
   * @param disconnected aborts when the client disconnects
   *
   * @default none: the app names no callers
   */
  readonly authenticate?: (disconnected: AbortSignal) => Promise<Caller | undefined>
}

/**
 * Creates an `HttpRequest` from a request of Node's server. Reads the body only when a handler asks for it.
 */
export function readNodeRequest(
  req: IncomingMessage,
  res: ServerResponse,
  options: NodeRequestOptions,
): HttpRequest {
  const { path, params = {}, parsedBody, bodyLimit = defaultBodyLimit } = options
  const { clientAddress, host, authenticate } = options
  const signal = createDisconnectSignal(res)
  return {
    method: req.method ?? 'GET',
    path,
    params: joinParams(params),
    remoteAddress: req.socket.remoteAddress,
    clientAddress,
    host,
    baseUrl: () => baseUrlOf(req, options),
    originalPath: originalPathOf(req, options),
    httpVersion: req.httpVersion,
    ...(authenticate && { authenticate: () => authenticate(signal) }),
    signal,
    disconnect: () => void res.destroy(),
    closeIfStalled: (limits) => closeIfStalled(req, res, limits),
    onSent: (callback) => onSent(res, callback),
    // HTTP/2 sends the host in `:authority`.
    header: (name) =>
      joinValues(req.headers[name] ?? (name === 'host' ? req.headers[':authority'] : undefined)),
    headerNames: () => Object.keys(req.headers),
    responseHeader: (name) => joinValues(res.getHeader(name)),
    query: (name) => parseQuery(req.url).get(name) ?? undefined,
    queryAll: (name) => parseQuery(req.url).getAll(name),
    json: async (defaultBody, allowance) =>
      req.readableDidRead
        ? readParsedBody(parsedBody, req.headers['content-type'], defaultBody)
        : readNodeJson(req, toBytes(bodyLimit), defaultBody, allowance),
    bytes: (allowance) => (req.readableDidRead ? readParsedBytes(parsedBody) : readNodeBytes(req, allowance)),
    jsonBytes: (allowance) =>
      req.readableDidRead
        ? readParsedJsonBytes(parsedBody, req.headers['content-type'])
        : readNodeBytes(req, allowance),
  }
}

function baseUrlOf(req: IncomingMessage, options: NodeRequestOptions): string | undefined {
  const { path, host, protocol, publicUrl } = options
  const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true
  return (
    publicUrl ??
    toBaseUrl({
      protocol: protocol ?? (isEncrypted ? 'https' : 'http'),
      host: host ?? joinValues(req.headers.host ?? req.headers[':authority']),
      originalPath: originalPathOf(req, options),
      path,
    })
  )
}

function originalPathOf(req: IncomingMessage, { originalUrl }: NodeRequestOptions): string {
  const { originalUrl: byExpress } = req as { readonly originalUrl?: string }
  return pathOf(originalUrl ?? byExpress ?? req.url ?? '/')
}

/**
 * Sends a response on Node's server, unless another one was sent already. Resolves when it is sent or the client has
 * left. Rejects with the error of the body.
 */
export async function writeNodeResponse(
  { status, headers, body }: HttpResponse,
  res: ServerResponse,
): Promise<void> {
  // Other middleware, such as a timeout, may already have responded.
  if (res.headersSent) return closeBody(body)
  res.statusCode = status
  // Each header is set separately, which keeps the headers that the host app has set (CORS, security).
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  if (body === null || typeof body === 'string') {
    res.end(body ?? undefined)
    return
  }
  res.flushHeaders()
  try {
    await pipeline(body, res)
  } catch (error) {
    // The client disconnected, and `pipeline` has already closed the body.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

/**
 * Creates a request listener for `node:http` that also responds to unknown paths and methods. Throws a `TypeError` for
 * an invalid option.
 *
 * @param context the `Llm`, if the routes are those of `routesFor()`
 */
export function toNodeHandler<Context>(
  table: RouteTable<Context>,
  context: Context,
  options: HandlerOptions<IncomingMessage, RequestListener> = {},
): RequestListener {
  const { prefix, publicUrl, match } = checkHandler(table, context, options)
  const authenticate = createAuthenticator(options)
  const { fallback } = options

  const respond = async (
    req: IncomingMessage,
    res: ServerResponse,
    path: string,
    found: Match<Context> | undefined,
  ): Promise<HttpResponse> => {
    if (!found) return table.handleUnmatched(readNodeRequest(req, res, { path }), context)
    const { route, params } = found
    // Body parsers of connect, serverless platforms and tests store the parsed body here.
    const { body: parsedBody } = req as { readonly body?: unknown }
    const { bodyLimit } = route
    const request = readNodeRequest(req, res, {
      ...{ path, params, parsedBody, bodyLimit, publicUrl },
      // The route renders and logs every error, since this server has no error handler of the app.
      authenticate: (disconnected) =>
        authenticate(req, disconnected).catch((cause) => Promise.reject(LlmError.from(cause))),
    })
    return route.handle(request, context)
  }
  const send = (res: ServerResponse, response: Promise<HttpResponse>): void =>
    void response
      .then((response) => writeNodeResponse(response, res))
      .catch(() => (res.headersSent ? res.destroy() : res.writeHead(500).end()))

  return (req, res) => {
    const path = pathBelow(prefix, pathOf(req.url ?? '/'))
    if (path === undefined)
      return fallback ? fallback(req, res) : send(res, Promise.resolve(outsidePrefix(prefix)))
    const found = match(req.method ?? 'GET', path)
    if (fallback && prefix === '' && !found) return fallback(req, res)
    send(res, respond(req, res, path, found))
  }
}

const joinValues = (value: number | string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value?.toString()

async function closeBody(body: HttpResponse['body']): Promise<void> {
  if (body !== null && typeof body !== 'string') await body[Symbol.asyncIterator]().return?.()
}

/** Path of a request target, which may be an absolute URL (RFC 9112, 3.2.2). */
const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/'

const parseQuery = (url = ''): URLSearchParams => new URLSearchParams(url.slice(`${url}?`.indexOf('?')))

function onSent(res: ServerResponse, callback: () => void): void {
  let isCalled = false
  const call = (): void => {
    if (!isCalled) callback()
    isCalled = true
  }
  // Serverless platforms emit no 'close' after 'finish'.
  for (const event of ['finish', 'close']) res.once(event, call)
  if (res.destroyed) call()
}

function createDisconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController()
  // 'close' also fires when other middleware, such as a timeout, has responded. In that case, the work is not
  // needed.
  const abort = (): void => controller.abort()
  if (res.destroyed) abort()
  else res.once('close', abort)
  return controller.signal
}
