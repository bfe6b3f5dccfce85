import { configDefaults, defineConfig } from 'vitest/config'
import { CountReporter } from './test/support/count-reporter.ts'

/** Suites that need more than Node: left out, with a line, unless asked for. */
const needMore = { 'test/packaging/install.test.ts': 'a package registry, and minutes' }
const all = Boolean(process.env.MODELMOUNT_ALL_SUITES)
if (!all) {
  for (const [suite, need] of Object.entries(needMore)) {
    process.stdout.write(`left out: ${suite} (needs ${need}; MODELMOUNT_ALL_SUITES=1 runs it)\n`)
  }
}

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(all ? [] : Object.keys(needMore))],
    reporters: ['default', new CountReporter()],
    // Model processes compute beside the tests: two at once on two cores are many times slower.
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
