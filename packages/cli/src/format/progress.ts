/** Shows the progress of long operations: bars in a terminal, JSON lines for scripts. */
import { bar, type ProgressUnit } from './bar.ts'
import { spinner } from './spinner.ts'

/** A progress line of the Ollama API. */
export interface ProgressLine {
  readonly status: string
  readonly digest?: string
  readonly total?: number
  readonly completed?: number
  /** Unit of `total` and `completed`. @default 'bytes' */
  readonly unit?: ProgressUnit
}

export type Terminal = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>

export async function showProgress(lines: AsyncIterable<ProgressLine>, out: Terminal): Promise<void> {
  if (!out.isTTY) {
    for await (const line of lines) out.write(`${JSON.stringify(line)}\n`)
    return
  }
  const board = new Board(out)
  const redraw = setInterval(() => board.draw(), redrawMs)
  try {
    for await (const line of lines) board.take(line)
    board.finish()
  } finally {
    clearInterval(redraw)
    board.draw()
  }
}

const redrawMs = 100

interface Row extends ProgressLine {
  readonly startedMs: number
  /** Bytes or requests that were complete before this command started. */
  readonly first: number
}

/** Draws a row for each transfer and for each status without a transfer. */
class Board {
  readonly #out: Terminal
  readonly #rows = new Map<string, Row>()
  #drawn = 0
  #isFinished = false

  constructor(out: Terminal) {
    this.#out = out
  }

  take(line: ProgressLine): void {
    const key = line.digest ?? line.status
    const { startedMs = performance.now(), first = line.completed ?? 0 } = this.#rows.get(key) ?? {}
    this.#rows.set(key, { ...line, startedMs, first })
  }

  /** Fills all bars, because the last line of a transfer may report less than its total. */
  finish(): void {
    this.#isFinished = true
    for (const [key, row] of this.#rows) if (row.total) this.#rows.set(key, { ...row, completed: row.total })
  }

  draw(): void {
    const lines = [...this.#rows.values()].map((row, index) => this.#text(row, index === this.#rows.size - 1))
    const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A` : ''
    this.#out.write(up + lines.map((line) => `\r${line}\x1b[K\n`).join(''))
    this.#drawn = lines.length
  }

  #text({ status, total, completed = 0, unit, first, startedMs }: Row, isLast: boolean): string {
    const columns = this.#out.columns || 80
    if (!total) return `${status} ${isLast && !this.#isFinished ? spinner() : ''}`.slice(0, columns - 1)
    const elapsedMs = performance.now() - startedMs
    return bar({ status, total, completed, resumed: first, elapsedMs, unit }, columns)
  }
}
