/** What a call has taken, of which it can take more, and which is corrected when the call is over. */
import { checkCost, nothing } from './demand.ts'
import type { Cost, LimitStatus, Reservation } from './limits.ts'

/** @param charge takes what is to be taken beyond, or gives back what is less than nothing; the last time, the call is over */
export function reservation(
  limits: readonly LimitStatus[],
  reserved: Cost,
  charge: (difference: Cost, isOver: boolean) => Promise<void>,
): Reservation {
  let taken = reserved
  let isOpen = true
  /** One after the other: what is settled is the difference to what has really been taken. */
  let taking: Promise<void> | undefined

  const take = async (more: Cost): Promise<void> => {
    checkCost(more)
    if (!isOpen) return
    const charged = taking ? taking.then(() => charge(more, false)) : charge(more, false)
    const took = charged.then(() => {
      taken = { requests: taken.requests + more.requests, tokens: taken.tokens + more.tokens }
    })
    taking = took.catch(() => {}) // Whoever takes hears of it.
    await took
  }
  const settle = async (actual?: Cost): Promise<void> => {
    if (actual) checkCost(actual)
    if (!isOpen) return
    isOpen = false
    if (taking) await taking
    const { requests, tokens } = actual ?? taken
    await charge({ requests: requests - taken.requests, tokens: tokens - taken.tokens }, true)
  }
  return { limits, take, settle, release: () => settle(nothing) }
}
