/** Creates responses with a complete body. */
import type { HttpResponse } from './message.ts'

/** Creates a response whose body is the JSON of a value. */
export function json(
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(value),
  }
}

export const empty = (status = 200): HttpResponse => ({ status, headers: {}, body: null })

export const text = (body: string, status = 200): HttpResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body,
})
