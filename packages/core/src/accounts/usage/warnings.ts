/** Who hears that a spending limit is near: whoever listens to the channel `modelmount:spend`, and the app's own function. */
import { type Channel, channel } from 'node:diagnostics_channel'
import type { Caller, SpendLimit } from '../auth/caller.ts'

export interface SpendWarning {
  readonly caller: string
  readonly keyName?: string | undefined
  /** Of the limit: 0.8 for 80 %; 1 also where what is left was too little for a call. */
  readonly threshold: number
  readonly spentNanoUsd: number
  readonly limitNanoUsd: number
  readonly per: SpendLimit['per']
}

export interface SpendWarningOptions {
  /** Shares of a limit, from 0 to 1. @default [0.8, 1] */
  readonly thresholds?: readonly number[] | undefined
  /** Called once for each threshold and period. What it throws is not heard. */
  readonly onWarning?: ((warning: SpendWarning) => void) | undefined
}

export const toWarning = (
  caller: Caller,
  { nanoUsd, per }: SpendLimit,
  spentNanoUsd: number,
): Omit<SpendWarning, 'threshold'> => ({
  caller: caller.id,
  keyName: caller.key?.name,
  spentNanoUsd,
  limitNanoUsd: nanoUsd,
  per,
})

export const spendChannel = 'modelmount:spend'

export class SpendWarnings {
  readonly #thresholds: readonly number[]
  readonly #onWarning: ((warning: SpendWarning) => void) | undefined
  readonly #channel: Channel = channel(spendChannel)

  constructor({ thresholds = [0.8, 1], onWarning }: SpendWarningOptions = {}) {
    this.#thresholds = thresholds
    this.#onWarning = onWarning
  }

  /** @param before what was spent, in nano-dollars: what lies between is told, but for the whole, of which it hears in `onExhausted` */
  onSpent(before: number, warning: Omit<SpendWarning, 'threshold'>): void {
    const { spentNanoUsd: after, limitNanoUsd: limit } = warning
    for (const threshold of this.#thresholds)
      if (threshold < 1 && before < threshold * limit && after >= threshold * limit)
        this.#tell({ ...warning, threshold })
  }

  /** Nothing is left, or not enough for a call. */
  onExhausted(warning: Omit<SpendWarning, 'threshold'>): void {
    if (this.#thresholds.includes(1)) this.#tell({ ...warning, threshold: 1 })
  }

  #tell(warning: SpendWarning): void {
    if (this.#channel.hasSubscribers) this.#channel.publish(warning)
    try {
      this.#onWarning?.(warning)
    } catch {
      // An answer must not fail for it.
    }
  }
}
