/** An API of our own: keys, and what they may. Mounted only where the app asks for it. */

import type { Access } from '../../accounts/auth/access.ts'
import { check } from '../../accounts/keys/schema.ts'
import { LlmError } from '../../errors.ts'
import { originOf } from '../../http/guard.ts'
import type { HttpRequest } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import type { Route } from '../../http/route.ts'
import type { Llm } from '../../llm.ts'
import { defineDialect, type Handler } from '../dialect.ts'
import { type DialectTable, tableOf } from '../table.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { describe } from './openapi.ts'
import { type AdminRoute, adminRouteTable } from './routes.ts'

export function adminTable(): DialectTable {
  const { routes, ...table } = tableOf([admin])
  return { ...table, routes: routes.map(forOwnPages) }
}

const handlerOf =
  ({ body, mayLackBody = false, status, handle }: AdminRoute): Handler =>
  async ({ request, llm, caller }) => {
    const answer = await handle({
      llm,
      caller,
      id: request.params.id ?? '',
      query: (name) => request.query(name),
      body: body && check(body, await request.json(mayLackBody ? {} : undefined)),
    })
    return json(answer, status)
  }

/** Its own requests per minute: who answers with all of theirs can still be managed, and nobody guesses ids by the thousand. */
const limited =
  (handler: Handler): Handler =>
  async (call) => {
    await call.llm.admit(call.caller, 'admin')
    return handler(call)
  }

const describeItself: Handler = async () => json(describe(adminRouteTable))

const admin = defineDialect({
  name: 'admin',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ...adminRouteTable.map(
      (route) => [route.method, route.path, limited(handlerOf(route)), route.scope ?? 'admin'] as const,
    ),
    ['GET', '/openapi.json', limited(describeItself), 'admin'],
  ],
})

/** No page from elsewhere manages keys, whichever may ask models. */
const forOwnPages = (route: Route<Llm>): Route<Llm> => ({
  ...route,
  handle: (request, llm) => route.handle(request, { ...llm, access: { ...llm.access, crossOrigin } }),
})

const crossOrigin: Access['crossOrigin'] = (request: HttpRequest) => {
  if (originOf(request, []).kind === 'refused')
    throw new LlmError('permission', 'Pages from elsewhere may not call the admin API.')
  return {}
}
