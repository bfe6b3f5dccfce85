import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Listening, listen } from '../support/listen.ts'
import { intendedDifferences } from './intended-differences.ts'
import { exchanges } from './recording.ts'
import { describeResult, type Result, replay } from './replay.ts'
import { folderOfStandIns } from './stand-ins.ts'

/** Prints every difference, intended or not, and what took long. */
const isVerbose = process.env.MODELMOUNT_DIFFERENCES === '1'

const models = folderOfStandIns()
const intended = new Set(intendedDifferences.flatMap(({ ids }) => ids))
const notBuilt = new Set(intendedDifferences.flatMap(({ ids, notBuilt }) => (notBuilt ? ids : [])))

let llm: Llm
let server: Listening
let results: readonly Result[]

beforeAll(async () => {
  llm = await createLlm({ models: models.path })
  server = await listen(toNodeHandler(routesFor(), llm))
  results = await replay(exchanges, server.url)
  print(summary())
}, 300_000)

afterAll(async () => {
  await server.close()
  await llm.close()
  models.remove()
})

const differingOf = (some: readonly Result[]): readonly Result[] =>
  some.filter(({ differences }) => differences.length > 0)
const differing = (): readonly Result[] => differingOf(results)

describe('replayed, the recorded requests', () => {
  test('get answers of the recorded shape, but for the intended differences', () => {
    const unexpected = differing().filter(({ exchange }) => !intended.has(exchange.id))

    expect(unexpected.map(describeResult)).toEqual([])
  })

  test('differ wherever a difference is intended', () => {
    const equal = results.filter(({ differences }) => differences.length === 0)

    expect(equal.map(({ exchange }) => exchange.id).filter((id) => intended.has(id))).toEqual([])
  })

  test('get equal answers nine times out of ten, where what they ask for is built', () => {
    const built = results.filter(({ exchange }) => !notBuilt.has(exchange.id))

    expect(1 - differingOf(built).length / built.length).toBeGreaterThanOrEqual(0.9)
  })
})

test('an intended difference names recorded exchanges, each once', () => {
  const ids = intendedDifferences.flatMap((difference) => difference.ids)
  const recorded = new Set(exchanges.map(({ id }) => id))

  expect(ids.filter((id) => !recorded.has(id))).toEqual([])
  expect(ids).toHaveLength(intended.size)
})

function summary(): string {
  const equal = results.length - differing().length
  const built = results.length - notBuilt.size
  const percent = ((100 * equal) / built).toFixed(1)
  return `${equal} of ${built} recorded exchanges equal (${percent} %), ${built - equal} different by intention; ${notBuilt.size} more ask for what is not built yet`
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
