/** Requests of the pages. All URLs are relative to the page, so that they work wherever the console is mounted. */
import createClient from 'openapi-fetch'
import type { paths } from './admin-api.d.ts'

/** Request header with the token that shows that a page of the console sent a request. */
const csrfHeader = 'x-modelmount-csrf'

let csrfToken = ''

/** Sets the token of `GET session`. */
export function setCsrfToken(token: string): void {
  csrfToken = token
}

/** `fetch` with the CSRF token. @param url relative to the page, such as `llm/api/tags` */
export const send = (url: string, init: RequestInit = {}): Promise<Response> => {
  const headers = new Headers(init.headers)
  if (!['GET', 'HEAD'].includes(init.method ?? 'GET')) headers.set(csrfHeader, csrfToken)
  return fetch(new URL(url, document.baseURI), { ...init, headers, credentials: 'same-origin' })
}

/** The admin API. */
export const admin = createClient<paths>({
  baseUrl: new URL('admin', document.baseURI).href,
  fetch: async (request: Request) => {
    if (!['GET', 'HEAD'].includes(request.method)) request.headers.set(csrfHeader, csrfToken)
    return fetch(request)
  },
})
