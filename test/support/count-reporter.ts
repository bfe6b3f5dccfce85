import type { Reporter, TestModule } from 'vitest/node'

/** The last line of every run: what was counted, over all suites. Where `CI` is set, a skipped test is a failed run. */
export class CountReporter implements Reporter {
  readonly #leftOut: readonly string[]

  /** @param leftOut a line for each suite that this run leaves out */
  constructor(leftOut: readonly string[]) {
    this.#leftOut = leftOut
  }

  onInit(): void {
    for (const line of this.#leftOut) process.stdout.write(`left out: ${line}\n`)
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed++
      for (const test of module.children.allTests()) counts[test.result().state]++
    }
    const { passed, failed, skipped, pending } = counts
    if (process.env.CI && skipped + pending > 0) process.exitCode = 1
    process.once('exit', () =>
      process.stdout.write(`${passed} passed, ${failed} failed, ${skipped + pending} skipped\n`),
    )
  }
}
