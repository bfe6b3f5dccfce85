/** How much of a prompt was there already, for who measures: usage has its own rules for it in each API. */
import type { Generation } from '../calls/generation.ts'
import type { HttpResponse } from '../http/message.ts'

/** With the prompt tokens that were reused by the answers that had begun when the headers go out; without any, as it is. */
export function withReuseHeader(response: HttpResponse, generations: readonly Generation[]): HttpResponse {
  const known = generations.flatMap(({ promptUsage }) => promptUsage ?? [])
  if (known.length === 0) return response
  const reused = known.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0)
  return { ...response, headers: { ...response.headers, 'x-prompt-tokens-reused': `${reused}` } }
}
