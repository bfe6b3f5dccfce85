/** The tests of llama.cpp's server, with llama-server itself and with Modelmount. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { rankingModel } from '../support/made-models.ts'
import { differences, leftOut } from './cases.ts'
import { buildLlamaServer } from './llama-server.ts'
import { type CaseOutcome, PythonSuite } from './pytest.ts'
import { listenForStarts } from './server.ts'
import { standIns } from './stand-ins.ts'

/** With these weights, the documents of the tests have the order that the tests expect. */
const rankingSeed = 1
const limit = 60 * 60_000
const folder = emptyFolder()
const models = emptyFolder()
let baseline: readonly CaseOutcome[]
let ours: readonly CaseOutcome[]

beforeAll(async () => {
  const { executable, sources } = await buildLlamaServer()
  const suite = await PythonSuite.install(folder)
  const ranker = join(models, 'ranker.gguf')
  writeFileSync(ranker, rankingModel(rankingSeed))
  const common = {
    tests: join(sources, 'tools/server/tests'),
    models: standIns(ranker),
    leftOut: Object.keys(leftOut),
  }
  baseline = await suite.run({ ...common, server: executable })
  const starter = await listenForStarts(sources)
  const server = fileURLToPath(new URL('modelmount-server.py', import.meta.url))
  ours = await suite.run({ ...common, server, environment: { STARTER_PORT: `${starter.port}` } })
  await starter.close()
}, limit)

test('Modelmount passes the cases that llama-server passes with the stand-ins, except for the listed differences', ({
  task,
}) => {
  // Expectations about the text and the tokens of other models fail in both servers.
  const remaining = namesOf(baseline)
  const passed = new Set(namesOf(ours))
  const failed = remaining.filter((name) => !passed.has(name))
  task.meta.report = reportOf(remaining, passed)

  const reasons = new Map(ours.map(({ name, message }) => [name, message]))
  expect(Object.fromEntries(failed.map((name) => [name, differences[name] ?? reasons.get(name)]))).toEqual(
    differences,
  )
  expect(remaining.length).toBeGreaterThanOrEqual(150)
  expect(1 - failed.length / remaining.length).toBeGreaterThanOrEqual(0.93)
})

/** Names of the cases that have passed. */
const namesOf = (outcomes: readonly CaseOutcome[]): readonly string[] =>
  outcomes.filter(({ outcome }) => outcome === 'passed').map(({ name }) => name)

/** A table with a row for each file, and the differences. */
function reportOf(remaining: readonly string[], passed: ReadonlySet<string>): string {
  const rowOf = (title: string, isIncluded: (name: string) => boolean): string => {
    const cases = baseline.filter(({ name }) => isIncluded(name))
    const here = remaining.filter(isIncluded)
    return `| ${title} | ${cases.length} | ${here.length} | ${here.filter((name) => passed.has(name)).length} |`
  }
  const files = [...new Set(baseline.map(({ name }) => name.split('::', 1)[0] ?? ''))]
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
  return [
    '| File | Cases | llama-server passes | Modelmount passes of these |',
    '| --- | ---: | ---: | ---: |',
    ...files.map((file) => rowOf(file, (name) => name.startsWith(`${file}::`))),
    rowOf('all', () => true),
    '',
    '| Modelmount does not pass | Reason |',
    '| --- | --- |',
    ...Object.entries(differences).map(([name, reason]) => `| ${cell(name)} | ${reason} |`),
    '',
    '| Left out | Reason |',
    '| --- | --- |',
    ...Object.entries(leftOut).map(([name, reason]) => `| ${name} | ${reason} |`),
  ].join('\n')
}
