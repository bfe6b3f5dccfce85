/** A route that shows the state of the app to those who operate it. */
import { AuthenticateError } from '../accounts/auth/access.ts'
import { LlmError, statusOf } from '../errors.ts'
import type { HttpResponse } from '../http/message.ts'
import { json } from '../http/respond.ts'
import { retryHeaders } from '../limits/headers.ts'
import { internals, type Llm } from '../llm.ts'
import { authorizeOperator } from './authorize-operator.ts'
import type { Dialect } from './dialect.ts'

/**
 * Creates a dialect with one GET route, for callers with the scope `admin:read`, and with `auth: 'anonymous'` for direct
 * calls from this machine. Pages of other origins cannot read it.
 */
export const createOperatorDialect = (
  name: string,
  path: string,
  respond: (llm: Llm) => Promise<HttpResponse>,
): Dialect => ({
  name,
  isSpokenBy: undefined,
  home: undefined,
  checkOrigin: (request, access) => {
    access.checkSameOrigin(request)
    return {}
  },
  renderError: (_request, error) => renderError(error),
  routes: [
    {
      method: 'GET',
      path,
      handle: async (request, llm) => {
        const { access, report } = llm[internals]
        try {
          access.checkSameOrigin(request)
          await authorizeOperator(request, access)
          const { headers, ...response } = await respond(llm)
          return { ...response, headers: { ...headers, 'cache-control': 'no-store' } }
        } catch (cause) {
          // It belongs to the error handler of the app.
          if (cause instanceof AuthenticateError) throw cause.cause
          const error = LlmError.from(cause)
          report(error)
          return renderError(error)
        }
      },
    },
  ],
})

export function renderError(error: LlmError): HttpResponse {
  const { code, message } = error
  const headers = { ...retryHeaders(error), 'cache-control': 'no-store' }
  return json({ error: { code, message } }, statusOf(code), headers)
}
