/**
 * The admin API: manages API keys, requests for other limits, and usage reports. The host app mounts it apart
 * from the other dialects.
 */

import { parseSettings } from '../../accounts/keys/schema.ts'
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { internals } from '../../llm.ts'
import { checkAdmin, checkMount } from '../check-mount.ts'
import { defineDialect, type Handler } from '../dialect.ts'
import { createDialectTable, type DialectTable } from '../table.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { createOpenApiDocument } from './openapi.ts'
import { recordChange } from './record-change.ts'
import { type AdminCall, type AdminRoute, scopeOf } from './route.ts'
import { adminRouteTable } from './routes/index.ts'

export const createAdminTable = (): DialectTable => ({
  ...createDialectTable([admin]),
  checkMount: (llm, authenticate) => {
    checkMount(llm, authenticate)
    checkAdmin(llm)
    llm[internals].liveCalls.listen()
  },
})

const toHandler =
  (route: AdminRoute): Handler =>
  async ({ request, caller, onError }, llm) => {
    const { method, body, isBodyOptional = false, needsDatabase = true, response, status } = route
    if (needsDatabase && !llm.keys.hasDatabase) throw databaseRequired()
    const adminCall: AdminCall = {
      ...{ llm, caller, request, onError },
      id: request.params.id ?? '',
      query: (name) => request.query(name),
      body: body && parseSettings(body, await request.json(isBodyOptional ? {} : undefined)),
    }
    const result = await (method === 'GET' ? route.handle(adminCall) : recordChange(route, adminCall))
    return typeof response === 'string' ? (result as HttpResponse) : json(result, status)
  }

const databaseRequired = (): LlmError =>
  invalidRequest('This route needs a database: the option `database` of createLlm().')

/**
 * Counts admin requests apart from inference requests, so that callers can manage keys even after they have
 * reached their limit of inference requests.
 */
const withRateLimit =
  (handler: Handler): Handler =>
  async (call, app) => {
    await call.llm.admitRequest('admin')
    return handler(call, app)
  }

/** Returns the OpenAPI 3.1 document of the admin API, to generate clients from it. */
export const openApiDocument = (): object => createOpenApiDocument(adminRouteTable)

const getOpenApiDocument: Handler = async () => json(openApiDocument())

const admin = defineDialect({
  name: 'admin',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  sameOriginOnly: true,
  routes: [
    ...adminRouteTable.map(
      (route) => [route.method, route.path, withRateLimit(toHandler(route)), scopeOf(route)] as const,
    ),
    ['GET', '/openapi.json', withRateLimit(getOpenApiDocument), 'admin:read'],
  ],
})
