/** Character sets as ranges of code points. */
export type Range = readonly [low: number, high: number]

export const lastCharacter = 0x10ffff
export const anyCharacter: Range = [0, lastCharacter]

export function complementRanges(ranges: readonly Range[]): readonly Range[] {
  const remaining: Range[] = []
  let from = 0
  for (const [low, high] of [...ranges].sort(([a], [b]) => a - b)) {
    if (from < low) remaining.push([from, low - 1])
    from = Math.max(from, high + 1)
  }
  return from <= lastCharacter ? [...remaining, [from, lastCharacter]] : remaining
}

export const intersectRanges = (a: readonly Range[], b: readonly Range[]): readonly Range[] =>
  a.flatMap(([low, high]) =>
    b.flatMap(([from, to]): Range[] => {
      const [first, last] = [Math.max(low, from), Math.min(high, to)]
      return first <= last ? [[first, last]] : []
    }),
  )
