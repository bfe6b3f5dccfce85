import { checkCost } from './demand.ts'
import type { Cost, LimitStatus, Reservation } from './limits.ts'

/** @param correct called once, with what the call has really cost */
export function reservation(
  limits: readonly LimitStatus[],
  correct: (actual: Cost) => Promise<void>,
): Reservation {
  let isOpen = true
  const settle = async (actual: Cost): Promise<void> => {
    checkCost(actual)
    if (!isOpen) return
    isOpen = false
    await correct(actual)
  }
  return { limits, settle, release: () => settle(nothing) }
}

const nothing: Cost = { requests: 0, tokens: 0 }
