/** Checks options that are a time limit. */
import { type Duration, toMs } from '../units.ts'
import { describeValue, parseOption } from './check.ts'

interface TimeoutRange {
  readonly minMs: number
  readonly maxMs: number
  /** Follows "Expected the option to be" in the error message. */
  readonly text: string
}

/** Up to the longest time of a timer in Node.js. A longer timer fires at once. */
const anyTimer: TimeoutRange = { minMs: 1, maxMs: 2 ** 31 - 1, text: 'a duration from 1 ms to 24 days' }

/** Returns milliseconds. */
export function resolveTimeout(
  option: string,
  value: Duration,
  { minMs, maxMs, text }: TimeoutRange = anyTimer,
): number {
  const ms = parseOption(option, () => toMs(value))
  if (ms >= minMs && ms <= maxMs) return ms
  throw new TypeError(`Expected \`${option}\` to be ${text}, got ${describeValue(value)}`)
}
