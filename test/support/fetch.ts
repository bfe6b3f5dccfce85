/** A host for fetch handlers (`Request` to `Response`), on Node's HTTP server. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Llm, routesFor } from '@modelmount/core'
import { type FetchHandler, toFetchHandler } from '@modelmount/core/http'

interface FetchHandlerOptions extends NonNullable<Parameters<typeof toFetchHandler>[2]> {
  readonly cloudRoutes?: boolean | undefined
  readonly llamaServerRoutes?: boolean | undefined
}

/** The routes of the model APIs in such a host. All requests appear to come from the loopback address. */
export const fetchHandler = (
  llm: Llm,
  { cloudRoutes, llamaServerRoutes, ...options }: FetchHandlerOptions = {},
): RequestListener =>
  fetchHost(
    toFetchHandler(routesFor(undefined, { cloudRoutes, llamaServerRoutes }), llm, {
      remoteAddress: () => '127.0.0.1',
      httpVersion: (request) => httpVersions.get(request),
      ...options,
    }),
  )

const httpVersions = new WeakMap<Request, string>()

export function fetchHost(handler: FetchHandler): RequestListener {
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const disconnected = new AbortController()
    res.once('close', () => disconnected.abort())
    const hasBody = req.method !== 'GET' && req.method !== 'HEAD'
    const request = new Request(`http://${req.headers.host}${req.url}`, {
      method: req.method ?? 'GET',
      headers: Object.entries(req.headers).map(([name, value]): [string, string] => [name, String(value)]),
      body: hasBody ? Readable.toWeb(req) : null,
      duplex: 'half',
      signal: disconnected.signal,
    })
    httpVersions.set(request, req.httpVersion)
    const response = await handler(request)
    res.writeHead(response.status, Object.fromEntries(response.headers)).flushHeaders()
    if (response.body) await pipeline(response.body, res)
    else res.end()
  }
  return (req, res) => void serve(req, res).catch(() => res.destroy())
}
