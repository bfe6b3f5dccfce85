/** Checks the table of incidents: no incident is missing, and each has a test that exists and runs. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { longSuites } from '../suites.ts'
import { titlesIn } from '../support/titles.ts'
import { incidents, type Proof } from './incidents.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Number of incidents in each group. */
const groups = { A: 14, B: 11, C: 13, D: 13, E: 8, F: 8 }
const ids = Object.entries(groups).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, index) => `${letter}-${index + 1}`),
)

/** By incident, its tests. */
const proofs = new Map(
  Object.entries(incidents).map(([id, { answer }]): [string, readonly Proof[]] => [
    id,
    'tests' in answer ? answer.tests : [],
  ]),
)

test('the table has each of the 67 incidents, in order, with one sentence', () => {
  expect(Object.keys(incidents)).toEqual(ids)
  expect(ids).toHaveLength(67)
  for (const { what } of Object.values(incidents)) expect(what).toMatch(/^[A-Z\d][^\n]{20,120}\.$/)
})

test('each incident has a test, except for those of capabilities that do not exist yet', () => {
  const open = Object.entries(incidents).filter(([, { answer }]) => !('tests' in answer))

  for (const [id, tests] of proofs) if (!open.some(([one]) => one === id)) expect(tests, id).not.toEqual([])
  expect(open.flatMap(([id, { answer }]) => ('due' in answer ? [[id, answer.due]] : []))).toEqual([
    ['D-13', 'console'],
  ])
})

test('each test of the table exists, with exactly this title', () => {
  const titles = new Map<string, readonly string[]>()
  for (const [id, tests] of proofs)
    for (const [file, title] of tests) {
      expect(existsSync(join(root, file)), `${id}: ${file}`).toBe(true)
      if (!titles.has(file)) titles.set(file, titlesIn(join(root, file)))
      expect(titles.get(file), `${id}: ${file}`).toContain(title)
    }

  // A file without the title fails: otherwise this test would prove nothing.
  expect(titlesIn(join(root, 'test/incidents/incidents.test.ts'))).not.toContain('no such title')
  expect(titles.size).toBeGreaterThan(40)
})

test('at least one test of each incident runs in `npm test` or `.ci/run`', () => {
  const isLongOnly = (file: string): boolean => longSuites[file] !== undefined && !longSuites[file].sample

  const unproven = [...proofs].filter(
    ([, tests]) => tests.length > 0 && tests.every(([file]) => isLongOnly(file)),
  )
  expect(unproven.map(([id]) => id)).toEqual([])
})

test('each file of this folder is a test of the incidents that its first comment names', () => {
  const files = readdirSync(join(root, 'test/incidents'), { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.test.ts') && file !== 'incidents.test.ts')

  const missing = files.flatMap((file) => {
    const path = `test/incidents/${file}`
    const [comment = ''] = /^\/\*\*.*?\*\//s.exec(readFileSync(join(root, path), 'utf8')) ?? []
    const named = comment.match(/\b[A-F]-\d{1,2}\b/g) ?? []
    return named
      .filter((id) => !proofs.get(id)?.some(([proof]) => proof === path))
      .map((id) => `${id}: ${path}`)
  })

  expect(files.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
})
