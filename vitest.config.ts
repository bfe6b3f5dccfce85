import type { ProvidedContext } from 'vitest'
import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { aloneSuites, ciSuites, installedSuites, longSuites, otherMounts, unitSuites } from './test/suites.ts'
import { ClientTable } from './test/support/client-table.ts'
import { CountReporter } from './test/support/count-reporter.ts'
import { LeakReporter } from './test/support/leak-reporter.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Whether random suites try everything instead of a sample. */
    readonly isThorough: boolean
    /** Rows of the conformance table on mounts besides Node's server. */
    readonly conformanceRows: 'all' | 'mount' | 'shared'
  }
}

/** A part of `npm run test:long`: this run has its suites only, in full. */
const longPart = process.env.MODELMOUNT_LONG
const longOnly = Object.keys(longSuites).filter((suite) => longSuites[suite]?.sample === undefined)
const ciAlone = aloneSuites.filter((suite) => ciSuites.includes(suite))

interface Project {
  readonly include: readonly string[]
  readonly exclude?: readonly string[]
  readonly conformanceRows?: ProvidedContext['conformanceRows']
  readonly isThorough?: boolean
  /** One suite at a time, after the other projects. */
  readonly isAlone?: boolean
  /** Whether each suite gets a new worker process. Otherwise suites share workers, which saves their start. */
  readonly isIsolated?: boolean
}

function project(name: string, given: Project): TestProjectConfiguration {
  const { include, exclude = [], conformanceRows = 'mount', isThorough = false } = given
  const { isAlone = false, isIsolated = true } = given
  return {
    extends: true,
    test: {
      name,
      include: [...include],
      exclude: [...configDefaults.exclude, ...exclude],
      provide: { isThorough, conformanceRows },
      isolate: isIsolated,
      globalSetup: 'test/support/shared-postgres.ts',
      sequence: { groupOrder: isAlone ? 2 : isIsolated ? 1 : 0 },
      // Suites that share workers have no model process, and wait half of the time. Model processes compute beside
      // the tests: three at once on two cores are many times slower.
      ...(isAlone ? { fileParallelism: false } : { maxWorkers: isIsolated ? 2 : 4 }),
    },
  }
}

const longProject = project('long', {
  include: Object.keys(longSuites).filter((suite) => longSuites[suite]?.part === longPart),
  isThorough: true,
  isAlone: true,
  conformanceRows: 'all',
})

export default defineConfig({
  // For tests that hold a Nest app: TypeScript's `experimentalDecorators`.
  oxc: { decorator: { legacy: true } },
  test: {
    setupFiles: ['test/support/own-run-folder.ts'],
    reporters: [
      'default',
      new LeakReporter(),
      new ClientTable(),
      new CountReporter(process.env.MODELMOUNT_COUNTS),
      ...(longPart === undefined ? [] : ['json']),
    ],
    // Node imports the built packages directly. Vitest would transform them first, which takes several times as long.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects:
      longPart === undefined
        ? [
            project('unit', {
              include: unitSuites,
              exclude: [...ciSuites, ...longOnly, ...aloneSuites],
              isIsolated: false,
            }),
            project('test', {
              include: [
                'packages/*/{src,web}/**/*.test.ts',
                'test/**/*.test.ts',
                'examples/**/*.test.{js,ts}',
              ],
              exclude: [...ciSuites, ...longOnly, ...aloneSuites, ...unitSuites, ...installedSuites],
            }),
            project('test-alone', {
              include: aloneSuites,
              exclude: [...ciSuites, ...longOnly],
              isAlone: true,
            }),
            project('ci', {
              include: [...ciSuites, otherMounts],
              exclude: [...longOnly, ...aloneSuites],
              conformanceRows: 'shared',
            }),
            project('ci-alone', { include: ciAlone, isAlone: true }),
          ]
        : [longProject],
  },
})
