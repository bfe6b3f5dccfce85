/** Each exported name of each package, and each of its members, has a doc comment that says what callers have to know. */
import { expect, test } from 'vitest'
import { findGaps } from './doc-comments.ts'
import { type EntryPoint, entryPoints, sourceOf } from './entry-points.ts'

const noGaps = {
  undocumented: [],
  repeatingTheName: [],
  withoutDefault: [],
  withoutUnit: [],
  withoutErrors: [],
}

test('all exported names have doc comments with their units, defaults and errors', () => {
  const { count, ...gaps } = findGaps(new Map(entryPoints.map((entry) => [entry, sourceOf(entry.types)])))

  process.stdout.write(`${count} exported names and members have doc comments\n`)
  expect(count).toBeGreaterThan(1_000)
  expect(gaps).toEqual(noGaps)
}, 60_000)

/** Returns the gaps of a module, without its path. */
function gapsIn(text: string): Partial<ReturnType<typeof findGaps>> {
  const file = 'packages/core/src/example.ts'
  const [entry] = entryPoints
  const { count: _, ...gaps } = findGaps(new Map([[entry as EntryPoint, file]]), { [file]: text })
  return Object.fromEntries(
    Object.entries(gaps)
      .map(([kind, places]) => [kind, places.map((place) => place.replace(file, ''))] as const)
      .filter(([, places]) => places.length > 0),
  )
}

test('a name without a comment is found, also a member and the first name below the comment of a file', () => {
  const text = `/** What this file is about. */

export interface Box {
  readonly width: number
  /** What is in it. */
  readonly content: { readonly item: string }
  readonly kind: 'box'
}
export const box = 1
`
  expect(gapsIn(text)).toEqual({ undocumented: [':3 Box', ':4 Box.width', ':9 box'] })
})

test('a comment that says less than a caller has to know is found', () => {
  const text = `/** The box options. */
export interface BoxOptions {
  /** How it looks. */
  readonly color?: string
  /** How wide it is. @default as wide as its content */
  readonly width?: number
}

/** Puts a box somewhere. */
export function place(): void {
  throw new TypeError('There is no place.')
}
`
  expect(gapsIn(text)).toEqual({
    repeatingTheName: [':2 BoxOptions'],
    withoutDefault: [':4 BoxOptions.color'],
    withoutUnit: [':6 BoxOptions.width'],
    withoutErrors: [':10 place'],
  })
})
