/**
 * Prints a table at the end of a run: the outcome of each client SDK in each situation. Only passed tests
 * count.
 */
import type { Reporter, TestModule } from 'vitest/node'

declare module 'vitest' {
  interface TaskMeta {
    /** Outcome that a client test reports at its end. */
    cell?: Cell
  }
}

interface Cell {
  /** The server or framework under test. Each mount has a separate table. */
  readonly mount: string
  readonly client: string
  readonly situation: string
  readonly outcome: string
}

export class ClientTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const cells = modules
      .flatMap(({ children }) => [...children.allTests('passed')])
      .flatMap((test) => test.meta().cell ?? [])
    for (const mount of new Set(cells.map((cell) => cell.mount)))
      process.stdout.write(`\n${table(cells.filter((cell) => cell.mount === mount)).join('\n')}\n`)
  }
}

/** Formats a table. A cell without an outcome shows a question mark. */
function table(cells: readonly Cell[]): readonly string[] {
  const situations = [...new Set(cells.map(({ situation }) => situation))]
  const clients = [...new Set(cells.map(({ client }) => client))]
  const outcome = (client: string, situation: string): string =>
    cells.find((cell) => cell.client === client && cell.situation === situation)?.outcome ?? '?'
  const rows = [
    [cells[0]?.mount ?? '', ...situations],
    ...clients.map((client) => [client, ...situations.map((situation) => outcome(client, situation))]),
  ]
  const width = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) => row.map((text, column) => text.padEnd(width(column))).join('  '))
}
