/** What a caller hears whose spending limit does not pay for a call. */

import { LlmError } from '../../errors.ts'
import type { Caller, SpendLimit } from '../auth/caller.ts'
import { nextStart } from './periods.ts'

export function quota(caller: Caller, limit: SpendLimit, now: number): LlmError {
  const { per } = limit
  const resumesAt = nextStart(per, now)
  const rest = resumesAt ? ` Access resumes at ${resumesAt.toISOString().replace('.000', '')}.` : ''
  return new LlmError(
    'quota',
    `${nameOf(caller)} has too little left of ${wordsOf(limit)} for this request.${rest}`,
    {
      ...(caller.key && { keyName: caller.key.name }),
      per,
      ...(resumesAt && { resumesAt }),
    },
  )
}

/** There is enough, when calls that run give back what they do not need: nobody knows when that is. */
export const reservedByOthers = (caller: Caller, limit: SpendLimit): LlmError =>
  new LlmError(
    'rate_limit',
    `${nameOf(caller)} has enough left of ${wordsOf(limit)}, but its requests that are running may need it. Try again when they have ended.`,
    { retryAfterMs: 1_000 },
  )

/** What nobody has put a price on would never reach a limit. */
export const unpriced = (model: string): LlmError =>
  new LlmError(
    'permission',
    `The model "${model.slice(0, 200).toWellFormed()}" has no price, so a caller with a spending limit may not use it. In the app, give it one: createLlm({ prices: … }); of 0, where it costs nothing.`,
    { setup: true },
  )

const nameOf = ({ key }: Caller): string => (key ? `The key "${key.name}"` : 'This caller')

const wordsOf = ({ nanoUsd, per }: SpendLimit): string =>
  `its spending limit of $${nanoUsd / 1e9}${per === 'lifetime' ? '' : ` per ${per}`}`
