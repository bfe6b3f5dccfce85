/**
 * Creates the reservation of a call. The call can take more while it runs, and settles its actual cost at the
 * end.
 */
import { addCost, checkCost, zeroCost } from './demand.ts'
import type { Cost, LimitStatus, Reservation } from './limits.ts'

/**
 * @param charge takes `difference` from the buckets, or gives it back if it is negative. `isOver` is true
 *   once the call has ended
 */
export function createReservation(
  limits: readonly LimitStatus[],
  reserved: Cost,
  charge: (difference: Cost, isOver: boolean) => Promise<void>,
): Reservation {
  let total = reserved
  let isOpen = true
  /**
   * The last `take`, while it runs. `settle` waits for this promise, because the total is not known before.
   */
  let pendingTake: Promise<void> | undefined

  const take = async (more: Cost): Promise<void> => {
    checkCost(more)
    if (!isOpen) return
    const charged = pendingTake ? pendingTake.then(() => charge(more, false)) : charge(more, false)
    const recorded = charged.then(() => {
      total = addCost(total, more)
    })
    pendingTake = recorded.catch(() => {}) // The caller of `take` gets the error.
    await recorded
  }
  const settle = async (actual?: Cost): Promise<void> => {
    if (actual) checkCost(actual)
    if (!isOpen) return
    isOpen = false
    if (pendingTake) await pendingTake
    await charge(addCost(actual ?? total, total, -1), true)
  }
  return { limits, take, settle, release: () => settle(zeroCost) }
}
