// Rounds of measurements. Within a round, the sides take turns.
import { printProgress } from './measure.mjs'

/**
 * Returns, by measure and round, the numbers of each side and how many cores other processes used.
 * @param sides `ours`, `theirs`, and ours again as `control`
 */
export async function takeRounds(count, measures, sides, guard) {
  const samples = Object.fromEntries(Object.keys(measures).map((name) => [name, []]))
  for (let round = 1; round <= count; round++) {
    for (const [name, { run }] of Object.entries(measures)) {
      const { value, others } = await guard.take(() => inTurns(run, sides, round))
      samples[name].push({ ...value, others })
    }
    printProgress(`round ${round} of ${count}, ${guard.retakes} samples repeated so far`)
  }
  return samples
}

/** Each round begins with another side. */
async function inTurns(run, sides, round) {
  const names = Object.keys(sides)
  const numbers = {}
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(round + turn) % names.length]
    // An idle server starts slowly, because its memory has left the CPU caches.
    await sides[name].warmUp?.()
    numbers[name] = await run(sides[name])
  }
  return numbers
}
