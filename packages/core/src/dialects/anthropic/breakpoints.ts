/** Up to where a prompt is to be kept for the next call. Reference: Anthropic guides, "Prompt caching". */
import { z } from 'zod'
import { type CacheLifetime, limits } from '../../engine/request.ts'
import { optional } from '../fields.ts'

/** Of what can end a prefix that is kept. */
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
export interface Marked {
  readonly cache_control?: CacheLifetime | undefined
}

/** Of what cannot. */
export const noBreakpoint = { cache_control: optional(z.never({ error: 'Extra inputs are not permitted' })) }

/** Something of a prompt, and where the body has it. */
export interface Place {
  readonly path: readonly (string | number)[]
  readonly block: Marked & { readonly type?: string; readonly text?: string }
}

/** The last that can have a breakpoint: where one of the whole request stands. */
export const lastPlace = (places: readonly Place[]): Place | undefined =>
  places.findLast(({ block }) => block.type !== 'thinking' && block.text !== '')

/**
 * @param places in the order of the prompt: tools, system, messages
 * @param automatic the breakpoint of the body itself, which stands behind the last that can have one
 */
export function checkBreakpoints(
  places: readonly Place[],
  automatic: CacheLifetime | undefined,
  report: (path: Place['path'], message: string) => void,
): void {
  const last = automatic && lastPlace(places)
  const { cache_control: own } = last?.block ?? {}
  if (own !== undefined && own !== automatic)
    report(
      ['cache_control', 'ttl'],
      `the last block has a cache_control block with ttl='${own}' of its own, and here it is ttl='${automatic}'`,
    )
  const marked = places.filter(({ block }) => block.cache_control)
  if (last && own === undefined) marked.push({ path: [], block: { cache_control: automatic } })

  const most = limits.breakpoints
  if (marked.length > most)
    report([], `A maximum of ${most} blocks with cache_control may be provided. Found ${marked.length}.`)

  const shorter = marked.findIndex(({ block }) => block.cache_control === '5m')
  const late = marked.find(({ block }, at) => at > shorter && block.cache_control === '1h')
  if (shorter >= 0 && late)
    report(
      [...late.path, 'cache_control', 'ttl'],
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    )
}
