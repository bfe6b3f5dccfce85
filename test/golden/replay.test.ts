import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { intendedDifferences } from './intended-differences.ts'
import { exchanges } from './recording.ts'
import { describeResult, type Result, replay } from './replay.ts'
import { openSites, type Sites } from './sites.ts'

/** Prints every difference, intended or not, and slow requests. */
const isVerbose = process.env.MODELMOUNT_DIFFERENCES === '1'

const intended = new Set(intendedDifferences.flatMap(({ ids }) => ids))
const notBuilt = new Set(intendedDifferences.flatMap(({ ids, notBuilt }) => (notBuilt ? ids : [])))
const clientErrors = new Set(intendedDifferences.flatMap(({ ids, clientError }) => (clientError ? ids : [])))

let sites: Sites
let results: readonly Result[]

beforeAll(async () => {
  sites = await openSites()
  results = await replay(exchanges, sites)
  print(summary())
}, 300_000)

afterAll(() => sites.close())

const differingOf = (some: readonly Result[]): readonly Result[] =>
  some.filter(({ differences }) => differences.length > 0)
const differing = (): readonly Result[] => differingOf(results)

describe('replayed requests', () => {
  test('get responses of the recorded shape, except for intended differences', () => {
    const unexpected = differing().filter(({ exchange }) => !intended.has(exchange.id))

    expect(unexpected.map(describeResult)).toEqual([])
  })

  test('differ wherever a difference is intended', () => {
    const equal = results.filter(({ differences }) => differences.length === 0)

    expect(equal.map(({ exchange }) => exchange.id).filter((id) => intended.has(id))).toEqual([])
  })

  test('differ only by status for client errors', () => {
    const more = differing().filter(
      ({ exchange, differences }) => clientErrors.has(exchange.id) && differences.length > 1,
    )

    expect(more.map(describeResult)).toEqual([])
  })

  test('get equal responses, or a 4xx for a 5xx, for 92 % of the implemented features', () => {
    const { equal, built } = counted()

    expect((equal + clientErrors.size) / built).toBeGreaterThanOrEqual(0.92)
  })
})

test('an intended difference lists recorded exchanges, each once', () => {
  const ids = intendedDifferences.flatMap((difference) => difference.ids)
  const recorded = new Set(exchanges.map(({ id }) => id))

  expect(ids.filter((id) => !recorded.has(id))).toEqual([])
  expect(ids).toHaveLength(intended.size)
})

const counted = () => ({
  equal: results.length - differing().length,
  built: results.length - notBuilt.size,
})

function summary(): string {
  const { equal, built } = counted()
  const percent = (count: number, of: number): string => `${((100 * count) / of).toFixed(1)} %`
  const accepted = equal + clientErrors.size
  return [
    `${equal} of ${results.length} recorded exchanges equal (${percent(equal, results.length)})`,
    `${clientErrors.size} more equal except for a 4xx instead of a 5xx (${percent(accepted, built)} of the ${built} implemented ones)`,
    `${built - accepted} intentionally different`,
    `${notBuilt.size} need a feature that is not implemented yet`,
  ].join('; ')
}

function print(line: string): void {
  if (isVerbose) {
    for (const result of differing())
      process.stdout.write(
        `${intended.has(result.exchange.id) ? 'intended' : 'differs'} ${describeResult(result)}\n`,
      )
    const slow = results.filter(({ ms }) => ms > 1_000)
    for (const { exchange, ms } of slow) process.stdout.write(`slow ${exchange.id}: ${Math.round(ms)} ms\n`)
  }
  process.stdout.write(`${line}\n`)
}
