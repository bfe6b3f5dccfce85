/** Whole answers. */
import type { HttpResponse } from './message.ts'

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

export const text = (body: string, status = 200): HttpResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body,
})

/** In whole seconds, as clients read it, and at least one. */
export const retryAfter = (ms: number | undefined): Readonly<Record<string, string>> =>
  ms === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))) }
