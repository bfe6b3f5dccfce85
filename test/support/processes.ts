import { setTimeout as delay } from 'node:timers/promises'

export function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch {
    return false
  }
}

/** Waits until something holds, looking every few milliseconds. */
export async function until(holds: () => boolean, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > limit) throw new Error(`It did not hold within ${limitMs} ms: ${holds}`)
    await delay(10)
  }
}
