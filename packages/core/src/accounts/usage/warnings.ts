/** Who hears that a spending limit is near: whoever listens to the channel `modelmount:spending`, and the app's own function. */
import { type Channel, channel } from 'node:diagnostics_channel'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'

export interface SpendingWarning {
  readonly caller: string
  readonly keyName?: string | undefined
  /** Of the limit: 0.8 for 80 %; 1 also where what is left was too little for a call. */
  readonly threshold: number
  readonly spentNanoUsd: number
  readonly limitNanoUsd: number
  readonly period: NanoUsdLimit['period']
}

export interface SpendingWarningOptions {
  /** Shares of a limit, from 0 to 1. @default [0.8, 1] */
  readonly thresholds?: readonly number[] | undefined
  /** Called once for each threshold and period. What it throws is not heard. */
  readonly onWarning?: ((warning: SpendingWarning) => void) | undefined
}

export const toWarning = (
  caller: Caller,
  { nanoUsd, period }: NanoUsdLimit,
  spentNanoUsd: number,
): Omit<SpendingWarning, 'threshold'> => ({
  caller: caller.id,
  keyName: caller.key?.name,
  spentNanoUsd,
  limitNanoUsd: nanoUsd,
  period,
})

export const spendingChannel = 'modelmount:spending'

export class SpendingWarnings {
  readonly #thresholds: readonly number[]
  readonly #onWarning: ((warning: SpendingWarning) => void) | undefined
  readonly #channel: Channel = channel(spendingChannel)

  constructor({ thresholds = [0.8, 1], onWarning }: SpendingWarningOptions = {}) {
    this.#thresholds = thresholds
    this.#onWarning = onWarning
  }

  /** @param before what was spent, in nano-dollars: what lies between is told, but for the whole, of which it hears in `onExhausted` */
  onSpent(before: number, warning: Omit<SpendingWarning, 'threshold'>): void {
    const { spentNanoUsd: after, limitNanoUsd: limit } = warning
    for (const threshold of this.#thresholds)
      if (threshold < 1 && before < threshold * limit && after >= threshold * limit)
        this.#publish({ ...warning, threshold })
  }

  /** Nothing is left, or not enough for a call. */
  onExhausted(warning: Omit<SpendingWarning, 'threshold'>): void {
    if (this.#thresholds.includes(1)) this.#publish({ ...warning, threshold: 1 })
  }

  #publish(warning: SpendingWarning): void {
    if (this.#channel.hasSubscribers) this.#channel.publish(warning)
    try {
      this.#onWarning?.(warning)
    } catch {
      // An answer must not fail for it.
    }
  }
}
