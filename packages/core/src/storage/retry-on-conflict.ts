/** Doing it once more where others were in the way, and nothing has happened. */
import { setTimeout as delay } from 'node:timers/promises'

/** Pauses grow, and differ between those that are in each other's way. Throws the last error when the time is over. */
export async function again<Result>(
  attempt: () => Result | Promise<Result>,
  isPassing: (error: unknown) => boolean,
  limitMs = 5_000,
): Promise<Result> {
  const end = performance.now() + limitMs
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, 100)) {
    try {
      return await attempt()
    } catch (error) {
      if (!isPassing(error) || performance.now() > end) throw error
    }
    await delay(pauseMs * (0.5 + Math.random()))
  }
}
