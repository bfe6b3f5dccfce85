// Rounds of measuring: what is compared takes turns within each.
import { sayProgress } from './measure.mjs'

/**
 * For each measure the numbers of each side, round by round, and how many cores others used meanwhile.
 * @param sides `ours`, `theirs`, and ours again as `control`
 */
export async function takeRounds(count, measures, sides, guard) {
  const samples = Object.fromEntries(Object.keys(measures).map((name) => [name, []]))
  for (let round = 1; round <= count; round++) {
    for (const [name, { run }] of Object.entries(measures)) {
      const { value, others } = await guard.take(() => inTurns(run, sides, round))
      samples[name].push({ ...value, others })
    }
    sayProgress(`round ${round} of ${count}, ${guard.retakes} samples taken again so far`)
  }
  return samples
}

/** Who is first changes from round to round. */
async function inTurns(run, sides, round) {
  const names = Object.keys(sides)
  const numbers = {}
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(round + turn) % names.length]
    // Who was not asked meanwhile begins slowly: its memory has left the caches.
    await sides[name].warmUp?.()
    numbers[name] = await run(sides[name])
  }
  return numbers
}
