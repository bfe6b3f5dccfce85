import { appendFileSync, readFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/**
 * Prints the counts of a run as its last line. If the environment variable `CI` is set, a skipped test fails
 * the run.
 */
export class CountReporter implements Reporter {
  readonly #file: string | undefined

  /** @param file collects the counts of several runs. Then the last line prints their sum. */
  constructor(file: string | undefined) {
    this.#file = file
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const states = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) states.failed++
      for (const test of module.children.allTests()) states[test.result().state]++
    }
    const { passed, failed, skipped, pending } = states
    const run: Counts = { passed, failed, skipped: skipped + pending }
    if (process.env.CI && run.skipped > 0) process.exitCode = 1
    const sum = this.#file === undefined ? run : addTo(this.#file, run)
    process.once('exit', () =>
      process.stdout.write(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`),
    )
  }
}

/** Appends a run to the file, and returns the sum of all its runs. */
function addTo(file: string, run: Counts): Counts {
  appendFileSync(file, `${JSON.stringify(run)}\n`)
  const runs = readFileSync(file, 'utf8').trim().split('\n')
  return runs
    .map((line) => JSON.parse(line) as Counts)
    .reduce((sum, next) => ({
      passed: sum.passed + next.passed,
      failed: sum.failed + next.failed,
      skipped: sum.skipped + next.skipped,
    }))
}
