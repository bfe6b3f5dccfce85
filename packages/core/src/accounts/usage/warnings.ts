/**
 * Publishes warnings that a spending limit is near, to the channel `modelmount:spending` and to
 * `spendingWarnings.onWarning`.
 */
import { type Channel, channel } from 'node:diagnostics_channel'
import { LlmError } from '../../errors.ts'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'

/** A caller has spent a share of its limit. */
export interface SpendingWarning {
  /** Id of the caller. */
  readonly caller: string
  /** Name of the API key. Absent for a caller without a key. */
  readonly keyName?: string | undefined
  /**
   * The share of the limit that was reached, such as 0.8. It is 1 when the limit is spent, or when a call is
   * rejected because the remaining credit is too small.
   */
  readonly threshold: number
  /** What the caller has spent in the period, in billionths of a dollar. */
  readonly spentNanoUsd: number
  /** The spending limit, in billionths of a dollar. */
  readonly limitNanoUsd: number
  /** The period of the limit: a day or a month in UTC, or the lifetime of the caller. */
  readonly period: NanoUsdLimit['period']
}

export interface SpendingWarningOptions {
  /** Shares of a limit, above 0 and at most 1. @default [0.8, 1] */
  readonly thresholds?: readonly number[] | undefined
  /**
   * Called once for each threshold and period. No call waits for it. If it throws or rejects, that is logged.
   *
   * @default none: warnings are published on the channel only
   */
  readonly onWarning?: ((warning: SpendingWarning) => void | Promise<void>) | undefined
}

export const toWarning = (
  caller: Pick<Caller, 'id' | 'key'>,
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
  readonly #onWarning: SpendingWarningOptions['onWarning']
  readonly #onError: (cause: LlmError) => void
  readonly #channel: Channel = channel(spendingChannel)

  /** @param onError called when `onWarning` fails */
  constructor(
    { thresholds = [0.8, 1], onWarning }: SpendingWarningOptions,
    onError: (cause: LlmError) => void,
  ) {
    this.#onError = onError
    this.#thresholds = thresholds
    this.#onWarning = onWarning
  }

  /**
   * Publishes a warning for each threshold below 1 that a charge has crossed.
   *
   * @param before spending before the charge, in nano-dollars
   */
  onSpent(before: number, warning: Omit<SpendingWarning, 'threshold'>): void {
    const { spentNanoUsd: after, limitNanoUsd: limit } = warning
    for (const threshold of this.#thresholds)
      if (threshold < 1 && before < threshold * limit && after >= threshold * limit)
        this.#publish({ ...warning, threshold })
  }

  /**
   * Publishes a warning with the threshold 1, if that is among the thresholds. Call it when the limit is
   * spent, or when the remaining credit is too small for a call.
   */
  onExhausted(warning: Omit<SpendingWarning, 'threshold'>): void {
    if (this.#thresholds.includes(1)) this.#publish({ ...warning, threshold: 1 })
  }

  #publish(warning: SpendingWarning): void {
    if (this.#channel.hasSubscribers) this.#channel.publish(warning)
    // The promise handles a callback that throws, and one that rejects: neither may fail the call.
    new Promise<void>((resolve) => resolve(this.#onWarning?.(warning))).catch((cause: unknown) =>
      this.#onError(warningFailed(cause)),
    )
  }
}

const warningFailed = (cause: unknown): LlmError =>
  new LlmError('internal', 'The option `spendingWarnings.onWarning` failed.', {}, { cause })
