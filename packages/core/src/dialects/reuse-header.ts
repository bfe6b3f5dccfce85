/**
 * Response header with the number of reused prompt tokens. Benchmarks need this header, because each API
 * counts reused tokens differently in `usage`.
 */
import type { Generation } from '../calls/generation.ts'
import type { HttpResponse } from '../http/message.ts'

/** Sets the header to the sum over all started generations. Sets no header if no generation has started. */
export function withReuseHeader(response: HttpResponse, generations: readonly Generation[]): HttpResponse {
  const known = generations.flatMap(({ promptUsage }) => promptUsage ?? [])
  if (known.length === 0) return response
  const reused = known.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0)
  return { ...response, headers: { ...response.headers, 'x-prompt-tokens-reused': `${reused}` } }
}
