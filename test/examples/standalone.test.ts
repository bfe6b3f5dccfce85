/**
 * Copies each example into an empty folder, installs it from the packed packages as a stranger would, and runs its tests.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { environment, pack, root, run } from '../packaging/npm.ts'
import { filesOf, names } from './examples.ts'

// `run()` has a shorter limit of 120 s for each command, and ends it then.
vi.setConfig({ testTimeout: 250_000, maxConcurrency: 2 })

/** Folders of `packages/` by the names of their packages. */
const packages: Readonly<Record<string, string>> = {
  modelmount: 'cli',
  ...Object.fromEntries(
    ['ai-sdk', 'console', 'core', 'express', 'fastify', 'koa', 'nest', 'tiny-model'].map((name) => [
      `@modelmount/${name}`,
      name,
    ]),
  ),
}

interface Result {
  readonly installSeconds: number
  readonly testSeconds: number
  readonly tests: string
}

const results = new Map<string, Result>()
/** Tarballs by the names of their packages. */
let tarballs: Readonly<Record<string, string>>
let parent: string
/** Replaces engine builds for other platforms by empty packages, which saves a gigabyte for each example. */
let overrides: Readonly<Record<string, unknown>>

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'examples-'))
  const paths = await pack(Object.values(packages), parent)
  tarballs = Object.fromEntries(Object.keys(packages).map((name, index) => [name, `file:${paths[index]}`]))
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const { 'openapi-typescript': _unused, ...engines } = manifest.overrides
  overrides = engines
}, 120_000)

afterAll(() => rm(parent, { recursive: true, force: true }), 60_000)

test.concurrent.each(names)('examples/%s works in an empty folder', async (name) => {
  const folder = join(parent, name)
  for (const file of filesOf(name)) await cp(join(root, 'examples', name, file), join(folder, file))
  const path = join(folder, 'package.json')
  const manifest = JSON.parse(await readFile(path, 'utf8'))
  const { dependencies, devDependencies } = manifest
  const changed = {
    ...manifest,
    dependencies: fromTarballs(dependencies),
    devDependencies: fromTarballs(devDependencies),
    overrides: { ...overrides, ...siblings({ ...dependencies, ...devDependencies }) },
  }
  await writeFile(path, JSON.stringify(changed, null, 2))

  const started = performance.now()
  await run('npm', ['install', '--ignore-scripts'], folder)
  const installed = performance.now()
  const { stdout, stderr } = await run('npm', ['test'], folder, { ...environment, ...ownFolders(folder) })
  const tested = performance.now()

  const tests = countsOf(stdout + stderr)
  results.set(name, {
    installSeconds: (installed - started) / 1_000,
    testSeconds: (tested - installed) / 1_000,
    tests,
  })
  expect(tests).toMatch(/^\d+ passed$/)
  await rm(folder, { recursive: true, force: true })
})

test('seconds and tests of each example', ({ task }) => {
  Object.assign(task.meta, {
    report: [
      '| Example | `npm install`, s | `npm test`, s | Tests |',
      '| --- | ---: | ---: | --- |',
      ...names.map((name) => {
        const result = results.get(name)
        return result
          ? `| ${name} | ${result.installSeconds.toFixed(0)} | ${result.testSeconds.toFixed(0)} | ${result.tests} |`
          : `| ${name} | | | failed |`
      }),
    ].join('\n'),
  })
  expect([...results.keys()].sort()).toEqual([...names])
})

const fromTarballs = (dependencies: Readonly<Record<string, string>>): object =>
  Object.fromEntries(Object.entries(dependencies).map(([name, range]) => [name, tarballs[name] ?? range]))

/** The packages depend on each other by version, which no registry has. */
const siblings = (dependencies: Readonly<Record<string, string>>): object =>
  Object.fromEntries(Object.entries(tarballs).filter(([name]) => !(name in dependencies)))

/** The models and the model processes of this example only. */
const ownFolders = (folder: string): object => ({
  OLLAMA_MODELS: join(folder, 'models'),
  XDG_RUNTIME_DIR: dirname(folder),
  NO_COLOR: '1',
})

/** The last line of the runners that says how many tests there were, such as `6 passed`. */
const countsOf = (output: string): string =>
  Array.from(output.matchAll(/^\s*Tests:?\s+(.*?)\s*(?:\(\d+\)|, \d+ total)?$/gm), ([, counts]) => counts).at(
    -1,
  ) ?? 'no summary'
