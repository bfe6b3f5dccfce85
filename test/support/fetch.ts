/** The routes as a `fetch` handler, in what a host does that speaks `Request` and `Response` on Node. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'

export function fetchHandler(llm: Llm): RequestListener {
  const handler = toFetchHandler(routesFor(), llm, { remoteAddress: () => '127.0.0.1' })

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const left = new AbortController()
    res.once('close', () => left.abort())
    const hasBody = req.method !== 'GET' && req.method !== 'HEAD'
    const request = new Request(`http://${req.headers.host}${req.url}`, {
      method: req.method ?? 'GET',
      headers: Object.entries(req.headers).map(([name, value]): [string, string] => [name, String(value)]),
      body: hasBody ? Readable.toWeb(req) : null,
      duplex: 'half',
      signal: left.signal,
    })
    const response = await handler(request)
    res.writeHead(response.status, Object.fromEntries(response.headers)).flushHeaders()
    if (response.body) await pipeline(response.body, res)
    else res.end()
  }
  return (req, res) => void serve(req, res).catch(() => res.destroy())
}
