/** Errors for calls that a spending limit does not cover. */

import { LlmError } from '../../errors.ts'
import type { Caller } from '../auth/caller.ts'
import { describeSpendingLimit, type NanoUsdLimit, toSpendingLimit } from '../spending-limit.ts'
import { nextPeriodStart } from './periods.ts'

export function quotaExceeded(caller: Caller, limit: NanoUsdLimit, now: number): LlmError {
  const { period } = limit
  const resumesAt = nextPeriodStart(period, now)
  const rest = resumesAt ? ` Access resumes at ${resumesAt.toISOString().replace('.000', '')}.` : ''
  return new LlmError(
    'quota',
    `${describeCaller(caller)} has too little credit left for this request: ${describeLimit(limit)}.${rest}`,
    {
      ...(caller.key && { keyName: caller.key.name }),
      period,
      ...(resumesAt && { resumesAt }),
    },
  )
}

/**
 * The error for a call that must wait until running calls release reserved credit.
 *
 * @param freeInMs time until the reservations expire. Undefined while a running call may end at any time
 */
export const creditReserved = (caller: Caller, limit: NanoUsdLimit, freeInMs: number | undefined): LlmError =>
  new LlmError(
    'rate_limit',
    `${describeCaller(caller)} has no free credit: running requests have reserved the rest of ${describeLimit(limit)}. Try again when they have ended.`,
    { retryAfterMs: freeInMs ?? 1_000 },
  )

/**
 * The error for a model without a price. Its calls cost nothing, so they would never reach a spending limit.
 */
export const modelUnpriced = (model: string): LlmError =>
  new LlmError(
    'permission',
    `The model "${model.slice(0, 200).toWellFormed()}" has no price, so callers with a spending limit cannot use it. The operator can set one, also 0: option \`prices\` of createLlm(), or modelmount serve --prices.`,
    { setup: true },
  )

const describeCaller = ({ key }: Caller): string => (key ? `The key "${key.name}"` : 'This caller')

const describeLimit = (limit: NanoUsdLimit): string =>
  `the spending limit of ${describeSpendingLimit(toSpendingLimit(limit))}`
