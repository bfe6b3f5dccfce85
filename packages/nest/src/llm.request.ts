/** The request of Express, as Nest hands it on, and what core sees of it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type HttpRequest, type NodeRequestOptions, readNodeRequest } from '@modelmount/core/http'

/** The request of Express, as far as it is used here. */
export interface LlmRequest extends IncomingMessage {
  readonly ip?: string | undefined
  readonly path: string
  readonly params: Readonly<Record<string, unknown>>
  readonly route: { readonly path: string }
  readonly body?: unknown
  readonly user?: unknown
}

/** @param pattern the path of the route, as it is in our table */
export const readRequest = (
  req: LlmRequest,
  res: ServerResponse,
  pattern: string,
  more: Pick<NodeRequestOptions, 'bodyLimit' | 'caller'> = {},
): HttpRequest =>
  readNodeRequest(req, res, {
    path: pathBelow(req, pattern),
    params: req.params,
    parsedBody: req.body,
    ...more,
  })

/** Without the prefixes that Nest has put before the pattern. */
function pathBelow({ path, route }: LlmRequest, pattern: string): string {
  const depth = route.path.slice(0, -pattern.length).split('/').length
  return `/${path.split('/').slice(depth).join('/')}`
}
