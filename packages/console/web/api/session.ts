/** The session of the viewer. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { request, send, setCsrfToken } from './client.ts'
import { checkResponse, toNetworkError } from './errors.ts'
import { includesScope, type Scope } from './scopes.ts'

export type { Scope }

/** Response of `GET session`. */
export interface Session {
  readonly caller: { readonly id: string; readonly name?: string }
  readonly scopes: readonly Scope[]
  readonly csrfToken: string
  /** False where the host app's own login applies. */
  readonly canLogOut: boolean
  readonly hasDatabase: boolean
  /** Who may call the APIs. Programs need an API key with `keys` only. */
  readonly auth: 'anonymous' | 'host' | 'keys'
  /** Base URL of the APIs for programs, such as `https://example.com/llm`. */
  readonly apiUrl?: string
}

/** The ways to log in. With neither, the host app has its own login. */
export interface Logins {
  readonly key: boolean
  readonly link: boolean
}

/** Response of `GET session` for a viewer who has not logged in. */
export interface LoggedOut {
  readonly logins: Logins
  /** Why a session has ended. */
  readonly message?: string
}

type SessionState = { readonly session: Session } | LoggedOut

export const sessionKey = ['session'] as const

/** The session, or the ways to log in. */
export function useSessionQuery() {
  const client = useQueryClient()
  return useQuery({
    queryKey: sessionKey,
    queryFn: () => fetchSession(client.getQueryData<SessionState>(sessionKey)),
    staleTime: 60_000,
  })
}

async function fetchSession(before: SessionState | undefined): Promise<SessionState> {
  const response = await send('session').catch((error: unknown) => {
    throw toNetworkError(error)
  })
  const state = (await (await checkResponse(response)).json()) as Session | LoggedOut
  if ('logins' in state) {
    const message = state.message ?? messageAfter(before)
    return { ...state, ...(message !== undefined && { message }) }
  }
  setCsrfToken(state.csrfToken)
  return { session: state }
}

/** The server names no reason if the browser has forgotten the cookie. */
const messageAfter = (before: SessionState | undefined): string | undefined =>
  before && 'session' in before ? 'Your session has ended. Log in again.' : before?.message

/** Exchanges an API key or a one-time token for a session cookie. */
export const logIn = (credential: { readonly key: string } | { readonly token: string }): Promise<Response> =>
  request('session', { json: credential })

/** Ends the session, and forgets everything that it has read. */
export function useLogOut(): () => Promise<void> {
  const client = useQueryClient()
  return async () => {
    await request('session', { method: 'DELETE' })
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] })
    // Forgets the session as well, which has not ended by itself.
    await client.resetQueries({ queryKey: sessionKey })
  }
}

const SessionContext = createContext<Session | undefined>(undefined)
export const SessionProvider = SessionContext.Provider

/** The session of a page that is shown to a viewer who has logged in. */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (session === undefined) throw new Error('useSession: expected a SessionProvider above this component.')
  return session
}

/** Whether the viewer has a scope. */
export const useCan = (scope: Scope): boolean => includesScope(useSession().scopes, scope)
