/**
 * Repeats database work after a conflict with concurrent work. The failed attempt must have changed nothing.
 */
import { setTimeout as delay } from 'node:timers/promises'

const limitMs = 5_000

export const retryDeadline = (): number => performance.now() + limitMs

/**
 * Calls `attempt` until it no longer fails with a conflict. After the deadline, throws the last error. The pauses
 * grow and are random, so that conflicting processes do not retry at the same time.
 *
 * @param deadline time by `performance.now()` @default in 5 s
 */
export async function retryOnConflict<Result>(
  attempt: () => Result | Promise<Result>,
  isConflict: (error: unknown) => boolean,
  deadline = retryDeadline(),
): Promise<Result> {
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, 100)) {
    try {
      return await attempt()
    } catch (error) {
      if (!isConflict(error) || performance.now() > deadline) throw error
    }
    await delay(pauseMs * (0.5 + Math.random()))
  }
}
