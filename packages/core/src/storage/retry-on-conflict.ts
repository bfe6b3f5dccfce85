/** Doing it once more where others were in the way, and nothing has happened. */
import { setTimeout as delay } from 'node:timers/promises'

/** Pauses grow, and differ between those that are in each other's way. Throws the last error when the time is over. */
export async function retryOnConflict<Result>(
  attempt: () => Result | Promise<Result>,
  isConflict: (error: unknown) => boolean,
  limitMs = 5_000,
): Promise<Result> {
  const deadline = performance.now() + limitMs
  for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, 100)) {
    try {
      return await attempt()
    } catch (error) {
      if (!isConflict(error) || performance.now() > deadline) throw error
    }
    await delay(pauseMs * (0.5 + Math.random()))
  }
}
