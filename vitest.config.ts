import { configDefaults, defineConfig } from 'vitest/config'
import { ClientTable } from './test/support/client-table.ts'
import { CountReporter } from './test/support/count-reporter.ts'
import { hasDockerRegistry } from './test/support/docker-registry.mjs'
import { LeakReporter } from './test/support/leak-reporter.ts'

/** Suites that need more than Node: left out, with a line, unless asked for. */
const needMore: Record<string, string> = {
  'test/clients/python.test.ts': 'Python, and a package index',
  'test/packaging/install.test.ts': 'a package registry, and minutes',
  'test/packaging/sizes.test.ts': 'a package registry',
  'test/packaging/tarballs.test.ts': 'a package registry, and minutes',
}
/** Suites that try a sample of what they could. */
const samples: Record<string, string> = {
  'packages/core/src/grammar/schema/numbers.test.ts': '300 of 1,000 ranges of numbers',
  'test/grammar/random-schemas.test.ts': '300 of 5,000 schemas',
  'test/local-engine/constrained.test.ts': '80 of 300 schemas, 15 of 100 tools',
  'test/local-engine/forged.test.ts': '12 of 187 files that native code sees',
  'test/local-engine/kills.test.ts': '12 of 200 kills',
  'test/local-engine/streams.test.ts': '12 of 200 requests',
  'test/local-engine/prompt-cache-answers.random.test.ts': '40 of 600 calls, 3 of 20 kills',
  'test/local-engine/prompt-cache-conversations.test.ts': '8 of 40 conversations, 12 of 48 seeds',
  'test/local-engine/prompt-cache-kinds.test.ts': '8 of 26 lengths of prompts',
  'test/local-engine/prompt-cache.random.test.ts': '160 of 1,600 lives of a cache',
  'test/local-engine/seeds.test.ts': '8 of 48 prompts, 4 of 48 long ones, 2 of 10 conversations',
  'test/registry/kills.test.ts': '3 of 10 kills, 150 of 500 MB',
}
/** What measures time or memory, or keeps both cores busy. */
const measured = [
  ...['cancelling', 'crashes', 'faults', 'full-machine', 'go-templates', 'hostile-neighbours', 'kills'],
  ...['memory', 'parallel', 'short-calls', 'stopped', 'texts'],
].join('|')
const alone = ['test/robustness/**/*.test.ts', `test/local-engine/@(${measured}).test.ts`]
const leftOut = process.env.MODELMOUNT_ALL_SUITES ? [] : Object.keys(needMore)
const sampled = process.env.MODELMOUNT_THOROUGH ? [] : Object.keys(samples)

export default defineConfig({
  // For tests that hold a Nest app: TypeScript's `experimentalDecorators`.
  oxc: { decorator: { legacy: true } },
  test: {
    setupFiles: ['test/support/own-run-folder.ts'],
    reporters: [
      'default',
      new LeakReporter(),
      new ClientTable(),
      new CountReporter([
        ...leftOut.map((suite) => `${suite} (needs ${needMore[suite]}; MODELMOUNT_ALL_SUITES=1 runs it)`),
        ...(hasDockerRegistry
          ? []
          : ["Docker's registry in test/registry (not installed: a small one stands in)"]),
        ...sampled.map((suite) => `most of ${suite} (${samples[suite]}; MODELMOUNT_THOROUGH=1 tries all)`),
      ]),
    ],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'in pairs',
          include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...leftOut, ...alone],
          // Model processes compute beside the tests: three at once on two cores are many times slower.
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: [...configDefaults.exclude, ...leftOut],
          fileParallelism: false,
          // Behind the others.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
