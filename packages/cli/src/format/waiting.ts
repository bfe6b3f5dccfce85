/** Shows that the user waits, in one line of a terminal: a spinner, or a bar once progress is reported. */
import { bar, type Operation } from './bar.ts'
import type { Terminal } from './progress.ts'
import { frameMs, spinner } from './spinner.ts'

export interface Waiting {
  /** Shows the progress of an operation. `undefined` shows the spinner again. */
  report(progress: Omit<Operation, 'resumed' | 'elapsedMs'> | undefined): void
  /** Clears the line. */
  stop(): void
}

/** Shows nothing if `out` is not a terminal, and nothing before 100 ms. */
export function showWaiting(out: Terminal): Waiting {
  if (!out.isTTY) return { report: () => {}, stop: () => {} }
  let operation: Omit<Operation, 'elapsedMs'> | undefined
  let startedMs = 0
  let isOver = false
  const draw = (): void => {
    const elapsedMs = performance.now() - startedMs
    out.write(`\r${operation ? bar({ ...operation, elapsedMs }, out.columns || 80) : spinner()}\x1b[K`)
  }
  const timer = setInterval(draw, frameMs)
  return {
    report: (progress) => {
      if (progress && progress.status !== operation?.status) {
        startedMs = performance.now()
        operation = { ...progress, resumed: progress.completed }
      } else operation = progress && operation && { ...operation, ...progress }
    },
    stop: () => {
      clearInterval(timer)
      if (!isOver) out.write('\r\x1b[K')
      isOver = true
    },
  }
}
