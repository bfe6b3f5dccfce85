/** Requests of the pages. All URLs are relative to the page, so that they work wherever the console is mounted. */
import createClient from 'openapi-fetch'
import type { paths } from './admin-api.d.ts'
import { checkResponse, toApiError, toNetworkError } from './errors.ts'

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

/** Sends a request, with a JSON body if given. Throws an `ApiError` unless the response is successful. */
export async function request(
  url: string,
  { json, ...init }: RequestInit & { json?: unknown } = {},
): Promise<Response> {
  const body = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) }
  const headers = new Headers(init.headers)
  if (json !== undefined) headers.set('content-type', 'application/json')
  const response = await send(url, { ...body, ...init, headers }).catch((error: unknown) => {
    throw toNetworkError(error)
  })
  return checkResponse(response)
}

/** The admin API. Wrap its calls in `read`. */
export const admin = createClient<paths>({
  baseUrl: new URL('admin', document.baseURI).href,
  fetch: async (request: Request) => {
    if (!['GET', 'HEAD'].includes(request.method)) request.headers.set(csrfHeader, csrfToken)
    return fetch(request)
  },
})

/** Returns the data of a call of the admin API. Throws an `ApiError` if the call failed. */
export async function read<Data>(
  call: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw toNetworkError(cause)
  })
  if (!response.ok) throw toApiError(response.status, error)
  return data as Data
}
