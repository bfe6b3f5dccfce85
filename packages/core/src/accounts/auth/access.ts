/** Checks the authentication, the scope and the origin of each request to a route. */

import { LlmError } from '../../errors.ts'
import { expectCredential } from '../../http/credential.ts'
import {
  classifyOrigin,
  crossOriginHeaders,
  isDirectLoopback,
  isLocalHost,
  localOrigins,
} from '../../http/guard.ts'
import type { HttpRequest } from '../../http/message.ts'
import type { Caller, Scope } from './caller.ts'
import { parseCaller } from './parse-caller.ts'

export interface AccessOptions {
  /**
   * How callers are authenticated. `anonymous` requires no credentials, but accepts only direct calls from
   * this machine. `host` uses the caller that the adapter's option `authenticate` returns. `keys` requires an
   * API key from the database.
   *
   * @default 'anonymous'
   */
  auth?: AuthMode | undefined

  /**
   * Allowed origins of browser pages: `https://app.example.com`, `http://*.example.com`.
   *
   * @default pages from this machine; with `auth: 'host'`, all pages, since the app's own CORS middleware
   * decides
   */
  origins?: readonly string[] | undefined

  /**
   * Default scopes, for callers whose own `scopes` are undefined. `inference` allows using models. `models`
   * allows adding, deleting and unloading models, and choosing their context size and keep-alive. `admin`
   * allows managing keys.
   *
   * @default ['inference']
   */
  scopes?: readonly Scope[] | undefined
}

export type AuthMode = (typeof authModes)[number]
const authModes = ['anonymous', 'host', 'keys'] as const

export interface Access {
  readonly auth: AuthMode
  /**
   * Returns CORS headers for a browser page of an allowed origin, and none for other clients. Throws
   * an `LlmError` `permission` for a page of any other origin.
   */
  checkOrigin(request: HttpRequest): Readonly<Record<string, string>>
  /**
   * Returns the authenticated caller. Rejects with an `LlmError`: `authentication`, or `permission` if the
   * caller lacks the scope.
   */
  authorize(request: HttpRequest, scope: Scope): Promise<Caller>
  /** Returns the scopes of a caller: its own, else those of the option `scopes`. */
  scopesOf(caller: Caller): readonly Scope[]
}

/** @param authenticate finds the API key with this secret and returns its caller */
export function createAccess(
  { auth = 'anonymous', origins, scopes = ['inference'] }: AccessOptions,
  authenticate: (secret: string) => Promise<Caller>,
): Access {
  if (!authModes.includes(auth))
    throw new TypeError(`Expected \`auth\` to be one of ${authModes.join(', ')}, got '${String(auth)}'`)
  if (!Array.isArray(scopes) || !scopes.every((scope) => allScopes.includes(scope)))
    throw new TypeError(
      `Expected \`scopes\` to be some of ${allScopes.join(', ')}, got ${JSON.stringify(scopes)}`,
    )
  const scopesOf = (caller: Caller): readonly Scope[] => caller.scopes ?? scopes
  const allowed = origins ?? (auth === 'host' ? undefined : localOrigins)
  const authenticators: Readonly<Record<AuthMode, (request: HttpRequest) => Caller | Promise<Caller>>> = {
    anonymous: authenticateLoopback,
    // Any falsy value means no caller: an app may write `authenticate: (req) => req.user && { … }`.
    host: ({ caller }) => (caller ? parseCaller(caller) : raise(authenticationRequired())),
    keys: (request) => authenticate(expectCredential(request)),
  }

  return {
    auth,
    checkOrigin: (request) => {
      const page = classifyOrigin(request, allowed)
      if (page.kind === 'refused') throw originNotAllowed(page.origin)
      return page.kind === 'allowed' && allowed ? crossOriginHeaders(page.origin) : {}
    },
    authorize: async (request, scope) => {
      const caller = await authenticators[auth](request)
      if (!scopesOf(caller).includes(scope))
        throw new LlmError('permission', `This route requires the scope '${scope}', which the caller lacks.`)
      return caller
    },
    scopesOf,
  }
}

const allScopes: readonly Scope[] = ['inference', 'models', 'admin']

function authenticateLoopback(request: HttpRequest): Caller {
  if (!isDirectLoopback(request)) throw loopbackRequired()
  if (!isLocalHost(request.header('host')))
    throw new LlmError(
      'permission',
      'The Host header names another machine. Call this server as localhost or 127.0.0.1.',
      { page: true },
    )
  return { id: 'anonymous' }
}

function raise(error: LlmError): never {
  throw error
}

const authenticationRequired = (): LlmError =>
  new LlmError('authentication', 'Authentication required: `authenticate` returned no caller.')

const loopbackRequired = (): LlmError =>
  new LlmError(
    'authentication',
    "Authentication required: without it, only direct calls from this machine are answered. In the app, set `auth: 'host'` of createLlm() and the option `authenticate` of the router, or `auth: 'keys'`.",
    { setup: true },
  )

const originNotAllowed = (origin: string): LlmError =>
  new LlmError(
    'permission',
    `Origin not allowed: ${origin}. In the app, allow it: createLlm({ origins: ['${origin}'] }).`,
    { page: true },
  )
