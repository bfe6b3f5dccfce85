/** The cookie of the console, and the CSRF token that belongs to it. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { LlmError } from '@modelmount/core'
import type { HttpRequest } from '@modelmount/core/http'
import { parseCookie, stringifySetCookie } from 'cookie'

/** Request header with the CSRF token. */
const csrfHeader = 'x-modelmount-csrf'

/** Cookies of one host are shared by all its ports, on which other apps may have a console. */
function cookieName(request: HttpRequest): string {
  const [, port] = /:(\d+)$/.exec(request.host ?? request.header('host') ?? '') ?? []
  return port === undefined ? 'modelmount_console' : `modelmount_console_${port}`
}

/** Returns the secret of the session. Undefined without one. */
export const readCookie = (request: HttpRequest): string | undefined =>
  parseCookie(request.header('cookie') ?? '')[cookieName(request)] || undefined

/**
 * Returns the value of `set-cookie` for a response of the route `/session`. Without a path, browsers send the cookie to
 * the folder of that route, which is the console, also behind a proxy that changes paths.
 *
 * @param maxAgeMs 0 deletes the cookie. @default until the browser closes
 */
export const setCookie = (request: HttpRequest, secret: string, maxAgeMs?: number): string =>
  stringifySetCookie({
    name: cookieName(request),
    value: secret,
    httpOnly: true,
    sameSite: 'strict',
    secure: request.baseUrl()?.startsWith('https:') ?? false,
    ...(maxAgeMs !== undefined && { maxAge: Math.floor(maxAgeMs / 1_000) }),
  })

/** Creates the value of a cookie that stands for no session. It only binds the CSRF token to the browser. */
export const createNonce = (): string => randomBytes(32).toString('base64url')

/** A page of another site cannot read the token, and the cookie does not reveal it. */
export const csrfTokenOf = (secret: string): string =>
  createHash('sha256').update(`csrf:${secret}`).digest('base64url')

/** Throws an `LlmError` `permission` for a change without the CSRF token of its cookie. */
export function checkCsrf(request: HttpRequest): void {
  if (['GET', 'HEAD', 'OPTIONS'].includes(request.method)) return
  const secret = readCookie(request)
  const given = Buffer.from(request.header(csrfHeader) ?? '')
  const expected = Buffer.from(secret === undefined ? '' : csrfTokenOf(secret))
  if (secret === undefined || given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new LlmError(
      'permission',
      `The header ${csrfHeader} must have the \`csrfToken\` of GET session. Reload the page.`,
    )
}
