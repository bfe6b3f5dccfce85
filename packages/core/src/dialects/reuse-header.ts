/** A header with the reused prompt tokens, for benchmarks: each API has other rules for them in its usage. */
import type { Generation } from '../calls/generation.ts'
import type { HttpResponse } from '../http/message.ts'

/** Adds the reused prompt tokens of all generations that have started. Adds no header if none has. */
export function withReuseHeader(response: HttpResponse, generations: readonly Generation[]): HttpResponse {
  const known = generations.flatMap(({ promptUsage }) => promptUsage ?? [])
  if (known.length === 0) return response
  const reused = known.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0)
  return { ...response, headers: { ...response.headers, 'x-prompt-tokens-reused': `${reused}` } }
}
