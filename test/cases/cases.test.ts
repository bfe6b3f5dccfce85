/** Checks the tables of cases: each case has a result and tests that exist, and the pages show them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { requirements } from '../conformance/requirements.ts'
import { longSuites } from '../suites.ts'
import { titlesIn } from '../support/titles.ts'
import { anthropicCases } from './anthropic.ts'
import type { Case, Proof } from './cases.ts'
import { openaiCases } from './openai.ts'
import { pageOf } from './pages.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const titles = new Map<string, readonly string[]>()
/** Whether a test exists and runs in `npm test` or `.ci/run`. */
function isRun(proof: Proof): boolean {
  if (typeof proof === 'string') return proof in requirements
  const [file, title] = proof
  if (!existsSync(join(root, file)) || (longSuites[file] && !longSuites[file].sample)) return false
  if (!titles.has(file)) titles.set(file, titlesIn(join(root, file)))
  return titles.get(file)?.includes(title) ?? false
}

describe.each([
  ['OpenAI', 130, openaiCases],
  ['Anthropic', 110, anthropicCases],
] as const)("the cases of %s's API", (api, count, groups) => {
  const cases = Object.values(groups).flatMap((group): [string, Case][] => Object.entries(group))

  test('are numbered without a gap, each with a sentence', () => {
    expect(cases.map(([number]) => Number(number))).toEqual(Array.from({ length: count }, (_, n) => n + 1))
    for (const [, { behavior }] of cases) expect(behavior).toMatch(/^[`A-Z\d][^\n]{10,110}\.$/)
  })

  test('have a test, and a reason, unless they are green', () => {
    for (const [number, { tests, result }] of cases) {
      expect([number, tests.length]).not.toEqual([number, 0])
      if (result.kind !== 'green') expect(result.why).toMatch(/^[A-Z][^\n]{10,130}\.$/)
    }
  })

  test('have only tests that exist and run', () => {
    const absent = cases.flatMap(([number, { tests }]) =>
      tests.filter((proof) => !isRun(proof)).map((proof) => [number, proof]),
    )

    expect(absent).toEqual([])
    // A wrong title would be found.
    expect(isRun(['test/clients/openai.test.ts', 'no such title'])).toBe(false)
  })

  test('are shown by their page', async () => {
    const name = api.toLowerCase()
    const page = pageOf(`Cases of ${api}'s API`, `${name}.md`, groups)

    await expect(page).toMatchFileSnapshot(join(root, `docs/compatibility/${name}-cases.md`))
  })
})
