/** What a call has taken, of which it can take more, and which is corrected when the call is over. */
import { checkCost, zeroCost } from './demand.ts'
import type { Cost, LimitStatus, Reservation } from './limits.ts'

/** @param charge takes what is to be taken beyond, or gives back what is less than nothing; the last time, the call is over */
export function createReservation(
  limits: readonly LimitStatus[],
  reserved: Cost,
  charge: (difference: Cost, isOver: boolean) => Promise<void>,
): Reservation {
  let total = reserved
  let isOpen = true
  /** One after the other: what is settled is the difference to what has really been taken. */
  let pendingTake: Promise<void> | undefined

  const take = async (more: Cost): Promise<void> => {
    checkCost(more)
    if (!isOpen) return
    const charged = pendingTake ? pendingTake.then(() => charge(more, false)) : charge(more, false)
    const recorded = charged.then(() => {
      total = { requests: total.requests + more.requests, tokens: total.tokens + more.tokens }
    })
    pendingTake = recorded.catch(() => {}) // Whoever takes hears of it.
    await recorded
  }
  const settle = async (actual?: Cost): Promise<void> => {
    if (actual) checkCost(actual)
    if (!isOpen) return
    isOpen = false
    if (pendingTake) await pendingTake
    const { requests, tokens } = actual ?? total
    await charge({ requests: requests - total.requests, tokens: tokens - total.tokens }, true)
  }
  return { limits, take, settle, release: () => settle(zeroCost) }
}
