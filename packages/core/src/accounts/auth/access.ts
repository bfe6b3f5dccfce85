/** Who may call the routes. Said by the options, and the same for the whole life of an `Llm`. */

import { LlmError } from '../../errors.ts'
import { expectCredential } from '../../http/credential.ts'
import {
  crossOriginHeaders,
  isDirectLoopback,
  isLocalHost,
  localOrigins,
  originOf,
} from '../../http/guard.ts'
import type { HttpRequest } from '../../http/message.ts'
import type { Caller, Scope } from './caller.ts'
import { checkedCaller } from './check-caller.ts'

export interface AccessOptions {
  /**
   * Who says who is calling. `anonymous`: nobody; only direct calls from this machine are answered.
   * `host`: the app, by the option `caller` of its router. `keys`: the API key that the call brings, of those in the database.
   *
   * @default 'anonymous'
   */
  auth?: Auth | undefined

  /**
   * Pages whose browsers may call, as origins: `https://app.example.com`, `http://*.example.com`.
   *
   * @default pages from this machine; with `auth: 'host'` all, since the app's own CORS middleware decides
   */
  origins?: readonly string[] | undefined

  /**
   * What callers may do of whom nobody says otherwise: ask models (`inference`), change which there are (`models`), run the
   * whole (`admin`).
   *
   * @default ['inference']
   */
  scopes?: readonly Scope[] | undefined
}

export type Auth = (typeof auths)[number]
const auths = ['anonymous', 'host', 'keys'] as const

export interface Access {
  readonly auth: Auth
  /** Headers for a page on another origin; none for all other calls. Throws `permission` for a page that may not call. */
  crossOrigin(request: HttpRequest): Readonly<Record<string, string>>
  /** Rejects with `authentication` for nobody, and with `permission` for somebody without the scope. */
  callerOf(request: HttpRequest, scope: Scope): Promise<Caller>
}

/** @param authenticate whose secret it is */
export function createAccess(
  { auth = 'anonymous', origins, scopes = ['inference'] }: AccessOptions,
  authenticate: (secret: string) => Promise<Caller>,
): Access {
  if (!auths.includes(auth))
    throw new TypeError(`Expected \`auth\` to be one of ${auths.join(', ')}, got '${String(auth)}'`)
  if (!Array.isArray(scopes) || !scopes.every((scope) => allScopes.includes(scope)))
    throw new TypeError(
      `Expected \`scopes\` to be some of ${allScopes.join(', ')}, got ${JSON.stringify(scopes)}`,
    )
  const allowed = origins ?? (auth === 'host' ? undefined : localOrigins)
  const ask: Readonly<Record<Auth, (request: HttpRequest) => Caller | Promise<Caller>>> = {
    anonymous,
    // `req.user && …` may be anything that is nobody.
    host: ({ caller }) => (caller ? checkedCaller(caller) : refuse(nobody())),
    keys: (request) => authenticate(expectCredential(request)),
  }

  return {
    auth,
    crossOrigin: (request) => {
      const page = originOf(request, allowed)
      if (page.kind === 'refused') throw refusedOrigin(page.origin)
      return page.kind === 'allowed' && allowed ? crossOriginHeaders(page.origin) : {}
    },
    callerOf: async (request, scope) => {
      const caller = await ask[auth](request)
      if (!(caller.scopes ?? scopes).includes(scope))
        throw new LlmError('permission', `This caller may not do that: it has no scope '${scope}'.`)
      return caller
    },
  }
}

const allScopes: readonly Scope[] = ['inference', 'models', 'admin']

function anonymous(request: HttpRequest): Caller {
  if (!isDirectLoopback(request)) throw notFromHere()
  if (!isLocalHost(request.header('host')))
    throw new LlmError('permission', 'The Host header of this call names another machine.', { page: true })
  return { id: 'anonymous' }
}

function refuse(error: LlmError): never {
  throw error
}

const nobody = (): LlmError => new LlmError('authentication', 'The app does not know who is calling.')

const notFromHere = (): LlmError =>
  new LlmError(
    'authentication',
    "Without authentication only direct calls from this machine are answered. In the app, say who calls: createLlm({ auth: 'host' }), and the option `caller` where the routes are mounted.",
    { setup: true },
  )

const refusedOrigin = (origin: string): LlmError =>
  new LlmError(
    'permission',
    `Pages from ${origin} may not call. In the app, allow them: createLlm({ origins: ['${origin}'] }).`,
    { page: true },
  )
