/** Suggests the name that a misspelt name stands for. */

/**
 * Returns the name that differs least: in case and separators only, or in up to two letters. Returns `undefined` if
 * there is none.
 */
export function closestName(given: string, names: readonly string[]): string | undefined {
  const bare = toBareName(given)
  const ranked = names
    .map((name) => ({ name, distance: editDistance(bare, toBareName(name)) }))
    .sort((a, b) => a.distance - b.distance)
  const [best] = ranked
  return best && best.distance <= Math.min(2, Math.floor(bare.length / 3)) ? best.name : undefined
}

/** At most 64 letters, as the distance takes quadratic time. */
const toBareName = (name: string): string => name.slice(0, 64).toLowerCase().replaceAll(/[_-]/g, '')

/** Number of letters to insert, delete or replace (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [at, letter] of [...a].entries()) {
    const next = [at + 1]
    for (const [index, other] of [...b].entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
