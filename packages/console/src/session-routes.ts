/** The routes of `session`: who the viewer is, logging in and out. */
import { type Caller, type Llm, LlmError } from '@modelmount/core'
import { AuthenticateError, internals, retryHeaders, statusOf } from '@modelmount/core/adapter'
import { type HttpRequest, type HttpResponse, json, type Route } from '@modelmount/core/http'
import { addressKey } from '@modelmount/core/limits'
import type { LoginLinks } from './login-links.ts'
import { checkCsrf, createNonce, csrfTokenOf, readCookie, setCookie } from './session-cookie.ts'
import { findViewer } from './viewer.ts'

export interface SessionOptions {
  readonly apiUrl: string | undefined
  readonly loginLinks: LoginLinks | undefined
  /** Whether the host app authenticates the viewers. */
  isHost(): boolean
}

/**
 * Logins per minute with one key, and wrong links from one address. `Access` limits wrong keys. Visitors behind one proxy
 * may have the same address, so wrong logins of one do not keep others out.
 */
const loginsPerMinute = 30

export function sessionRoutes(options: SessionOptions): readonly Route<Llm>[] {
  const { apiUrl, loginLinks, isHost } = options

  const describe = (request: HttpRequest, llm: Llm, caller: Caller, secret: string): object => ({
    caller: { id: caller.id, ...(caller.key && { name: caller.key.name }) },
    scopes: llm[internals].access.scopesOf(caller),
    csrfToken: csrfTokenOf(secret),
    canLogOut: !isHost(),
    auth: llm[internals].access.auth,
    hasDatabase: llm.keys.hasDatabase,
    apiUrl: apiUrl ?? originOf(request),
  })

  /** What the login page shows. */
  const describeLogin = (request: HttpRequest, llm: Llm, { message }: LlmError): HttpResponse => {
    const isOver = !isHost() && readCookie(request) !== undefined
    return json(
      {
        logins: { key: !isHost() && llm[internals].access.auth === 'keys', link: loginLinks !== undefined },
        ...(isOver && { message }),
      },
      200,
      noStore,
    )
  }

  const getSession: Handler = async (request, llm) => {
    const caller = await findViewer(request, llm, isHost()).catch((error: unknown) => {
      if (LlmError.is(error) && error.code === 'authentication') return error
      throw error
    })
    // Not 401: browsers report it as an error of the page, on each visit of the login page.
    if (LlmError.is(caller)) return describeLogin(request, llm, caller)
    const secret = readCookie(request)
    if (secret !== undefined) return json(describe(request, llm, caller, secret), 200, noStore)
    const nonce = createNonce()
    return json(describe(request, llm, caller, nonce), 200, {
      ...noStore,
      'set-cookie': setCookie(request, nonce),
    })
  }

  const logIn: Handler = async (request, llm) => {
    if (isHost()) throw new LlmError('invalid_request', 'The host app logs in the viewers of this console.')
    const { key, token } = parseCredentials(await request.json())
    const { access, sessions } = llm[internals]
    if (token !== undefined && !loginLinks?.redeem(token)) {
      await limitLogins(llm, addressKey(request.clientAddress ?? request.remoteAddress))
      throw invalidLink()
    }
    if (key !== undefined && access.auth !== 'keys')
      throw new LlmError('invalid_request', 'This app has no API keys. Log in with a link of the app.')
    const sessionKey =
      key === undefined ? undefined : { id: (await access.authenticateKey(key, request)).id, secret: key }
    if (sessionKey) await limitLogins(llm, sessionKey.id)
    const { secret, lifetimeMs } = await sessions.create(sessionKey)
    return json(describe(request, llm, await sessions.callerOf(secret), secret), 201, {
      ...noStore,
      'set-cookie': setCookie(request, secret, lifetimeMs),
    })
  }

  const logOut: Handler = async (request, llm) => {
    checkCsrf(request)
    const secret = readCookie(request)
    if (secret !== undefined) await llm[internals].sessions.end(secret)
    return json({}, 200, { 'set-cookie': setCookie(request, '', 0) })
  }

  const methods = { GET: getSession, POST: logIn, DELETE: logOut } as const
  return (['GET', 'POST', 'DELETE'] as const).map((method) => ({
    method,
    path: '/session',
    handle: async (request, llm) => {
      try {
        llm[internals].access.checkSameOrigin(request)
        return await methods[method](request, llm)
      } catch (cause) {
        if (cause instanceof AuthenticateError) throw cause.cause
        const error = LlmError.from(cause)
        llm[internals].report(error)
        const { code, message } = error
        return json({ error: { code, message } }, statusOf(code), { ...retryHeaders(error), ...noStore })
      }
    },
  }))
}

const noStore = { 'cache-control': 'no-store' }

type Handler = (request: HttpRequest, llm: Llm) => Promise<HttpResponse>

interface Credentials {
  readonly key?: string
  readonly token?: string
}

/** Expects an object with one of both. */
function parseCredentials(body: unknown): Credentials {
  const { key, token } = (body ?? {}) as Record<string, unknown>
  const isKey = typeof key === 'string' && token === undefined
  const isToken = typeof token === 'string' && key === undefined
  if (!isKey && !isToken) throw new LlmError('invalid_request', 'Expected `key` or `token`, a string.')
  return isKey ? { key } : { token: token as string }
}

/** Rejects with `rate_limit`. */
const limitLogins = async (llm: Llm, subject: string): Promise<void> => {
  const id = `console login ${subject}`
  await llm.limits.reserve([{ id, limits: { requestsPerMinute: loginsPerMinute } }], {
    requests: 1,
    tokens: 0,
  })
}

const originOf = (request: HttpRequest): string | undefined => {
  const url = request.baseUrl()
  return url === undefined ? undefined : new URL(url).origin
}

const invalidLink = (): LlmError =>
  new LlmError(
    'authentication',
    'This login link is not valid any more: it was used, or is older than ten minutes.',
  )
