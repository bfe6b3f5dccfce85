/** Checks the authentication, the scope and the origin of each request to a route. */

import { LlmError } from '../../errors.ts'
import { expectCredential } from '../../http/credential.ts'
import {
  classifyOrigin,
  crossOriginHeaders,
  isDirectLoopback,
  isLocalHost,
  localOrigins,
  type OriginRules,
} from '../../http/guard.ts'
import type { HttpRequest } from '../../http/message.ts'
import { allScopes, type Caller, includesScope, type Scope } from './caller.ts'
import type { FindCallers, KeyAuthenticator } from './key-authenticator.ts'
import { parseCaller } from './parse-caller.ts'

/** Options of authentication: who may call, from which pages, and with which scopes. */
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
   * Allowed origins of browser pages: `https://app.example.com`, `http://*.example.com`. Pages of the same origin
   * as the routes are always allowed. With `auth: 'host'`, so are pages for which the app's own CORS middleware has
   * set `access-control-allow-origin` to their origin, but not to `*`.
   *
   * @default pages from this machine; with `auth: 'host'`, none
   */
  origins?: readonly string[] | undefined

  /**
   * Default scopes, for callers whose own `scopes` are undefined. `inference` allows using models. `models`
   * allows adding, deleting and unloading models, and choosing their context size and keep-alive. `admin:read` allows
   * reading everything in the admin API, and the metrics. `admin` also allows managing keys. `fleet` allows forwarding
   * calls that another app has limited and charged.
   *
   * @default ['inference']
   */
  scopes?: readonly Scope[] | undefined

  /**
   * How many wrong API keys per minute one client address may send with `auth: 'keys'`, from 1 to 1,000,000.
   * Further wrong keys get 429 with `retry-after` instead of 401, and are looked up together, ten times per second
   * at most. Valid keys from the same address are accepted all the time. IPv6 addresses of one /64 count as one.
   *
   * @default 30
   */
  maxFailedAuthentications?: number | undefined
}

export type AuthMode = (typeof authModes)[number]
const authModes = ['anonymous', 'host', 'keys'] as const

/** Authentication of one mount: checks the origin of a request, and finds its caller. */
export interface Access {
  /** The option `auth` of `createLlm()`. */
  readonly auth: AuthMode
  /**
   * Returns CORS headers for a browser page of an allowed origin, and none for other clients. Throws
   * an `LlmError` `permission` for a page of any other origin.
   */
  checkOrigin(request: HttpRequest): Readonly<Record<string, string>>
  /** Throws an `LlmError` `permission` for a browser page of any other origin, even of an allowed one. */
  checkSameOrigin(request: HttpRequest): void
  /**
   * Returns the authenticated caller. Rejects with an `LlmError`, such as `authentication`, or `permission` if the
   * caller lacks the scope. Rejects with an `AuthenticateError` if the app's `authenticate` fails otherwise.
   */
  authorize(request: HttpRequest, scope: Scope): Promise<Caller>
  /**
   * Returns the caller that the adapter's option `authenticate` finds. Rejects with an `LlmError`
   * `authentication` without a caller, and with an `AuthenticateError` if `authenticate` fails.
   */
  authenticateByApp(request: HttpRequest): Promise<Caller>
  /**
   * Returns the caller of an API key. Rejects with an `LlmError`: `authentication`, or `rate_limit` after too many wrong
   * keys from this client.
   */
  authenticateKey(secret: string, request: HttpRequest): Promise<Caller>
  /** Throws an `LlmError` `permission` if the caller lacks the scope. */
  expectScope(caller: Caller, scope: Scope): void
  /** Returns the scopes of a caller: its own, else those of the option `scopes`. */
  scopesOf(caller: Caller): readonly Scope[]
}

/** Throws a `TypeError` that names the wrong option. */
export function checkAccessOptions({ auth = 'anonymous', origins, scopes = [] }: AccessOptions): void {
  if (!authModes.includes(auth))
    throw new TypeError(`Expected \`auth\` to be one of ${authModes.join(', ')}, got '${String(auth)}'`)
  if (!Array.isArray(scopes) || !scopes.every((scope) => allScopes.includes(scope)))
    throw new TypeError(
      `Expected \`scopes\` to be some of ${allScopes.join(', ')}, got ${JSON.stringify(scopes)}`,
    )
  if (origins !== undefined && !(Array.isArray(origins) && origins.every((one) => typeof one === 'string')))
    throw new TypeError(`Expected \`origins\` to be a list of strings, got ${JSON.stringify(origins)}`)
}

export function createAccess(options: AccessOptions, findCallers: FindCallers): Access {
  checkAccessOptions(options)
  const { auth = 'anonymous', origins, scopes = ['inference'], maxFailedAuthentications = 30 } = options
  const scopesOf = (caller: Caller): readonly Scope[] => caller.scopes ?? scopes
  const expectScope = (caller: Caller, scope: Scope): void => {
    if (!includesScope(scopesOf(caller), scope))
      throw new LlmError('permission', `This route requires the scope '${scope}', which the caller lacks.`)
  }
  let keyAuthenticator: Promise<KeyAuthenticator> | undefined
  const openKeyAuthenticator = async (): Promise<KeyAuthenticator> => {
    // Imported for the first key, so that an app without keys starts faster.
    const { KeyAuthenticator } = await import('./key-authenticator.ts')
    return new KeyAuthenticator(findCallers, maxFailedAuthentications)
  }
  const authenticateKey: Access['authenticateKey'] = async (secret, { clientAddress, remoteAddress }) => {
    keyAuthenticator ??= openKeyAuthenticator()
    return (await keyAuthenticator).authenticate(secret, clientAddress ?? remoteAddress)
  }
  const rules: OriginRules = {
    allowed: origins ?? (auth === 'host' ? [] : localOrigins),
    trustsFetchMetadata: auth !== 'anonymous',
  }
  const authenticators: Readonly<Record<AuthMode, (request: HttpRequest) => Caller | Promise<Caller>>> = {
    anonymous: authenticateLoopback,
    host: authenticateByApp,
    keys: async (request) => authenticateKey(expectCredential(request), request),
  }

  return {
    auth,
    checkOrigin: (request) => {
      const page = classifyOrigin(request, rules)
      if (page.kind === 'none' || page.kind === 'same') return {}
      // The app has set all headers for this page. Ours would replace some of them.
      if (auth === 'host' && isAllowedByApp(request, page.origin)) return {}
      if (page.kind === 'refused') throw originNotAllowed(page.origin)
      return crossOriginHeaders(page.origin)
    },
    checkSameOrigin: (request) => {
      if (classifyOrigin(request, { ...rules, allowed: [] }).kind === 'refused') throw sameOriginRequired()
    },
    authorize: async (request, scope) => {
      const caller = await (request.findCaller?.() ?? authenticators[auth](request))
      expectScope(caller, scope)
      return caller
    },
    ...{ authenticateByApp, authenticateKey, expectScope, scopesOf },
  }
}

/**
 * An error of the app's `authenticate` that is not an `LlmError`. Its cause belongs to the error handler of the
 * app's framework.
 */
export class AuthenticateError extends Error {}

async function authenticateByApp(request: HttpRequest): Promise<Caller> {
  const caller = await request.authenticate?.().catch((cause) => {
    throw LlmError.is(cause) ? cause : new AuthenticateError('`authenticate` has failed.', { cause })
  })
  // Any falsy value means no caller: an app may write `authenticate: (req) => req.user && { … }`.
  if (!caller) throw authenticationRequired()
  return parseCaller(caller)
}

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

/** Whether middleware of the host app has allowed this page to read the response, and not just any page. */
const isAllowedByApp = ({ responseHeader }: HttpRequest, origin: string): boolean =>
  responseHeader?.('access-control-allow-origin') === origin

const authenticationRequired = (): LlmError =>
  new LlmError('authentication', 'Authentication required: `authenticate` returned no caller.')

const loopbackRequired = (): LlmError =>
  new LlmError(
    'authentication',
    "Authentication required: with `auth: 'anonymous'`, the default, only direct calls from this machine are answered. In the app, write createLlm({ auth: 'host' }), and as an option of the mounted routes `authenticate: (req) => req.user && { id: req.user.id }`. A login or a guard in front of the routes does not count without it. For API keys, write createLlm({ auth: 'keys' }).",
    { setup: true },
  )

const sameOriginRequired = (): LlmError =>
  new LlmError('permission', 'Pages of other origins cannot call the admin API.')

const originNotAllowed = (origin: string): LlmError =>
  new LlmError(
    'permission',
    `Origin not allowed: ${origin}. In the app, allow it: createLlm({ origins: ['${origin}'] }).`,
    { page: true },
  )
