/** Package entry point `@modelmount/core/http`, for authors of framework adapters. */

export {
  type AuthenticateContext,
  type AuthenticateOptions,
  type Authenticator,
  createAuthenticator,
} from './authenticate.ts'
export { checkPublicUrl } from './base-url.ts'
export { readExpressClient } from './express-client.ts'
export { type FetchHandler, toFetchHandler } from './fetch.ts'
export { isDirectLoopback, isLocalHost, localOrigins } from './guard.ts'
export type { BodyAllowance, HttpRequest, HttpResponse, Method, StallLimits } from './message.ts'
export {
  type NodeRequestOptions,
  readNodeRequest,
  toNodeHandler,
  writeNodeResponse,
} from './node.ts'
export { json } from './respond.ts'
export type { Route, RouteTable } from './route.ts'
