/** A reverse proxy on the loopback address that streams both ways. It can rewrite headers like common proxies. */
import { type IncomingHttpHeaders, request } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { type Listening, listen } from './listen.ts'

/**
 * @param target URL of the server
 * @param rewrite returns the headers that the server gets. By default, `Host` names the server, as nginx and
 *   the development servers of front ends do it.
 */
export function plainProxy(
  target: string,
  rewrite: (headers: IncomingHttpHeaders) => IncomingHttpHeaders = ({ host: _, ...headers }) => ({
    ...headers,
    host: new URL(target).host,
  }),
): Promise<Listening> {
  return listen((req, res) => {
    const { method, url = '/' } = req
    const upstream = request(target + url, { method, headers: rewrite(req.headers) })
    upstream.once('response', (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      pipeline(response, res).catch(() => res.destroy())
    })
    pipeline(req, upstream).catch(() => res.destroy())
  })
}
