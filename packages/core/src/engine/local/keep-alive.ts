/** How long an unused model stays loaded. */
import type { LoadedProcess } from './loaded-process.ts'

/** Longest delay of a Node.js timer. */
const maxTimerMs = 2 ** 31 - 1

/** A keep-alive of 0 releases the model even when its prompt cache holds state. */
export const getKeepAliveMs = (
  { keepAlive, cachedUntil }: LoadedProcess,
  time: number,
): number | 'forever' =>
  keepAlive === 'forever' || keepAlive === 0 ? keepAlive : Math.max(keepAlive, cachedUntil - time)

/** Caps the time at the latest valid `Date`. */
export const toExpiryDate = (time: number, keepAlive: number | 'forever'): Date | 'never' =>
  keepAlive === 'forever' ? 'never' : new Date(Math.min(time + keepAlive, 8.64e15))

/** A timer of any length, which does not keep the host app running. */
export class ExpiryTimer {
  readonly #onExpiry: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(onExpiry: () => void) {
    this.#onExpiry = onExpiry
  }

  /** Uses a timer even for 0 ms, so that a queued call can stop it. */
  start(ms: number): void {
    this.stop()
    const waitMs = Math.min(ms, maxTimerMs)
    const onTime = (): void => {
      if (ms > waitMs) this.start(ms - waitMs)
      else this.#onExpiry()
    }
    this.#timer = setTimeout(onTime, waitMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
