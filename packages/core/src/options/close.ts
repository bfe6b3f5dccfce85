/** Options of `llm.close()`. */
import type { Duration } from '../units.ts'
import { checkKeys } from './check.ts'
import { resolveTimeout } from './timeout.ts'

/** Options of `llm.close()`. Durations are milliseconds, or texts such as `'10s'`. */
export interface CloseOptions {
  /**
   * How long the calls that were admitted may take to end. The rest then ends with an `LlmError` `overloaded`.
   *
   * @default 0: all calls end at once
   */
  readonly drain?: Duration | undefined
  /**
   * How long further calls are admitted before `drain` begins, while `isClosing` is already true. A load balancer
   * notices meanwhile that the app is not ready.
   *
   * @default 0
   */
  readonly admitFor?: Duration | undefined
}

/** Throws a `TypeError` for an invalid option. */
export function resolveCloseOptions(options: CloseOptions = {}): {
  readonly drainMs: number
  readonly admitMs: number
} {
  checkKeys('', options, ['drain', 'admitFor'])
  const { drain = 0, admitFor = 0 } = options
  return {
    drainMs: resolveTimeout('drain', drain, upToAnHour),
    admitMs: resolveTimeout('admitFor', admitFor, upToAnHour),
  }
}

const upToAnHour = { minMs: 0, maxMs: 3_600_000, text: "a duration of at most '1h'" }
