/** Checks options that are a time limit. */
import { type Duration, toMs } from '../units.ts'
import { describeValue, parseOption } from './check.ts'

/** The longest time of a timer in Node.js, in milliseconds. A longer timer fires at once. */
const maxTimerMs = 2 ** 31 - 1

/** Returns milliseconds. */
export function resolveTimeout(option: string, value: Duration): number {
  const ms = parseOption(option, () => toMs(value))
  if (ms >= 1 && ms <= maxTimerMs) return ms
  throw new TypeError(
    `Expected \`${option}\` to be a duration from 1 ms to 24 days, got ${describeValue(value)}`,
  )
}
