/** Finds out who looks at the console. */
import { type Caller, type Llm, LlmError } from '@modelmount/core'
import { internals } from '@modelmount/core/adapter'
import type { HttpRequest } from '@modelmount/core/http'
import { readCookie } from './session-cookie.ts'

/**
 * Returns the caller that the host app has logged in, or else that of the session. Rejects with `authentication` without
 * one.
 *
 * @param isHost whether the host app authenticates the viewers, with the option `authenticate`
 */
export async function findViewer(request: HttpRequest, llm: Llm, isHost: boolean): Promise<Caller> {
  const { access, sessions } = llm[internals]
  if (isHost) return access.authenticateByApp(request)
  const secret = readCookie(request)
  if (secret === undefined) throw new LlmError('authentication', 'Log in to the console.')
  return sessions.callerOf(secret)
}
