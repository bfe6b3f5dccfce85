/** Converts the request of a Nest handler, of Express or Fastify, to the request type of core. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import {
  type HttpRequest,
  type NodeRequestOptions,
  readExpressClient,
  readNodeRequest,
} from '@modelmount/core/http'
import { toFastifyUrl } from './fastify-routes.ts'
import { isReply, type LlmResponse } from './llm.response.ts'

/** The fields that requests of Express and Fastify share. */
export interface LlmRequest {
  /** HTTP method in upper case. */
  readonly method?: string | undefined
  /** Path and query of the request line. */
  readonly url?: string | undefined
  /** Headers by name, in lower case. */
  readonly headers: IncomingHttpHeaders
  /** Address of the client, as trusted proxies report it. */
  readonly ip?: string | undefined
  /** `http` or `https`, as trusted proxies report it. */
  readonly protocol?: string
  /** Path parameters, as the router has found them. */
  readonly params?: unknown
  /** Result of an earlier body parser. */
  readonly body?: unknown
  /** What a guard of the app has found, such as that of Passport. */
  readonly user?: unknown
}

/** The fields of an Express request that this package uses. */
interface NestExpressRequest extends IncomingMessage {
  readonly ip?: string | undefined
  readonly protocol?: string
  readonly path: string
  readonly params: Readonly<Record<string, unknown>>
  readonly route: { readonly path: string }
  readonly body?: unknown
  readonly app?: { get(setting: string): unknown }
}

/** The fields of a Fastify request that this package uses. */
interface NestFastifyRequest {
  readonly raw: IncomingMessage & { readonly body?: unknown }
  readonly url: string
  readonly originalUrl: string
  readonly ip: string
  readonly host: string
  readonly protocol: string
  readonly params: Readonly<Record<string, unknown>>
  readonly routeOptions: { readonly url?: string }
}

type RequestOptions = Pick<NodeRequestOptions, 'bodyLimit' | 'publicUrl' | 'authenticate'>

/** @param pattern the path of the route in the route table, without prefixes */
export const readRequest = (
  req: LlmRequest,
  res: LlmResponse,
  pattern: string,
  more: RequestOptions = {},
): HttpRequest =>
  isReply(res)
    ? {
        ...readFastifyRequest(req as LlmRequest & NestFastifyRequest, res.raw, pattern, more),
        responseHeader: (name) => res.getHeader(name)?.toString(),
      }
    : readExpressRequest(req as NestExpressRequest, res, pattern, more)

const readExpressRequest = (
  req: NestExpressRequest,
  res: ServerResponse,
  pattern: string,
  more: RequestOptions,
): HttpRequest =>
  readNodeRequest(req, res, {
    path: pathBelow(req.path, req.route.path, pattern),
    params: req.params,
    parsedBody: req.body,
    ...readExpressClient(req),
    ...more,
  })

function readFastifyRequest(
  { raw, url, routeOptions, params, ip, host, protocol, originalUrl }: NestFastifyRequest,
  res: ServerResponse,
  pattern: string,
  more: RequestOptions,
): HttpRequest {
  const [path = ''] = url.split('?', 1)
  const { '*': rest, ...named } = params
  const [, wildcard] = /\*(\w+)$/.exec(pattern) ?? []
  return readNodeRequest(raw, res, {
    path: pathBelow(path, toFastifyUrl(routeOptions.url ?? ''), toFastifyUrl(pattern)),
    params: wildcard === undefined ? named : { ...named, [wildcard]: rest },
    // Serverless hosts store a parsed body here.
    parsedBody: raw.body,
    ...{ clientAddress: ip, host: host || undefined, protocol, originalUrl },
    ...more,
  })
}

/** Returns the path without the prefixes that Nest has put before the pattern. */
function pathBelow(path: string, route: string, pattern: string): string {
  const depth = route.slice(0, -pattern.length).split('/').length
  return `/${path.split('/').slice(depth).join('/')}`
}
