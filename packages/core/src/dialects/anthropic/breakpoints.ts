/** Breakpoints of the prompt cache (`cache_control`). Reference: Anthropic guides, "Prompt caching". */
import { z } from 'zod'
import type { CacheLifetime } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { optional } from '../fields.ts'

/** Field of blocks that can end a cached prefix. */
export const breakpoint = {
  cache_control: optional(
    z
      .object({
        type: z.literal('ephemeral', { error: "Input should be 'ephemeral'" }),
        ttl: optional(z.enum(['5m', '1h'], { error: "Input should be '5m' or '1h'" })),
      })
      .transform(({ ttl = '5m' }) => ttl),
  ),
}
export interface Cacheable {
  readonly cache_control?: CacheLifetime | undefined
}

/** Rejects `cache_control` in blocks that cannot end a cached prefix. */
export const noBreakpoint = { cache_control: optional(z.never({ error: 'Extra inputs are not permitted' })) }

/** A block or tool, with its path in the request body. */
export interface BreakpointCandidate {
  readonly path: readonly (string | number)[]
  readonly block: Cacheable & { readonly type?: string; readonly text?: string }
}

/** Finds the last block or tool that can have a breakpoint. A request-level `cache_control` applies there. */
export const findLastCandidate = (
  candidates: readonly BreakpointCandidate[],
): BreakpointCandidate | undefined =>
  candidates.findLast(({ block }) => block.type !== 'thinking' && block.text !== '')

/**
 * Checks the number of breakpoints. Checks that breakpoints with `ttl: '1h'` come before breakpoints with
 * `ttl: '5m'`.
 *
 * @param candidates in the order of the prompt: tools, system, messages
 * @param automatic the request-level breakpoint, which applies to the last candidate
 */
export function checkBreakpoints(
  candidates: readonly BreakpointCandidate[],
  automatic: CacheLifetime | undefined,
  report: (path: BreakpointCandidate['path'], message: string) => void,
): void {
  const last = automatic && findLastCandidate(candidates)
  const { cache_control: own } = last?.block ?? {}
  if (own !== undefined && own !== automatic)
    report(
      ['cache_control', 'ttl'],
      `the last block already has a cache_control block with ttl='${own}', which differs from ttl='${automatic}'`,
    )
  const marked = candidates.filter(({ block }) => block.cache_control)
  if (last && own === undefined) marked.push({ path: [], block: { cache_control: automatic } })

  const max = limits.breakpoints
  if (marked.length > max)
    report([], `A maximum of ${max} blocks with cache_control may be provided. Found ${marked.length}.`)

  const firstShort = marked.findIndex(({ block }) => block.cache_control === '5m')
  const misplaced = marked.find(({ block }, at) => at > firstShort && block.cache_control === '1h')
  if (firstShort >= 0 && misplaced)
    report(
      [...misplaced.path, 'cache_control', 'ttl'],
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    )
}
