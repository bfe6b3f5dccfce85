/** Who may see what the server does if it requires no keys: callers on its own machine. */
import type { Caller } from '@modelmount/core'
import { isDirectLoopback, isLocalHost, readExpressClient, readNodeRequest } from '@modelmount/core/http'
import type { Request } from 'express'

export const findOperator = (req: Request): Caller | undefined =>
  isLocalCall(req) ? { id: 'operator', scopes: ['admin:read'] } : undefined

export function isLocalCall(req: Request): boolean {
  const request = readNodeRequest(req, req.res as never, { path: req.path, ...readExpressClient(req) })
  return isDirectLoopback(request) && isLocalHost(request.header('host'))
}
