/** Converts the Express request of a Nest handler to the request type of core. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type HttpRequest,
  type NodeRequestOptions,
  readExpressClient,
  readNodeRequest,
} from '@modelmount/core/http'

/** The fields of an Express request that this package uses. */
export interface LlmRequest extends IncomingMessage {
  readonly ip?: string | undefined
  readonly protocol?: string
  readonly path: string
  readonly params: Readonly<Record<string, unknown>>
  readonly route: { readonly path: string }
  readonly body?: unknown
  readonly user?: unknown
  readonly app?: { get(setting: string): unknown }
}

/** @param pattern the path of the route in the route table, without prefixes */
export const readRequest = (
  req: LlmRequest,
  res: ServerResponse,
  pattern: string,
  more: Pick<NodeRequestOptions, 'bodyLimit' | 'publicUrl' | 'authenticate'> = {},
): HttpRequest =>
  readNodeRequest(req, res, {
    path: pathBelow(req, pattern),
    params: req.params,
    parsedBody: req.body,
    ...readExpressClient(req),
    ...more,
  })

/** Returns the path without the prefixes that Nest has put before the pattern. */
function pathBelow({ path, route }: LlmRequest, pattern: string): string {
  const depth = route.path.slice(0, -pattern.length).split('/').length
  return `/${path.split('/').slice(depth).join('/')}`
}
