/** Shows a page in a terminal and draws it again and again, until the user ends it. */
import { setTimeout as delay } from 'node:timers/promises'

/** Escape sequences of ANSI terminals. The other screen leaves what was printed before. */
const ansi = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l', home: '\x1b[H', rest: '\x1b[J' }

/** @param read returns the page. Its errors end the loop. Its signal aborts when the user ends it */
export async function redraw(
  read: (signal: AbortSignal) => Promise<string>,
  intervalMs: number,
): Promise<void> {
  const ended = new AbortController()
  const end = (): void => ended.abort()
  const onKey = (key: Buffer): void => {
    // Ctrl + c sends no signal in raw mode.
    if (['q', '\u0003'].includes(key.toString())) end()
  }
  const { stdin, stdout } = process
  if (stdin.isTTY) stdin.setRawMode(true).on('data', onKey)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
  stdout.write(ansi.enter)
  try {
    while (!ended.signal.aborted) {
      stdout.write(toFrame(await read(ended.signal), stdout.columns || 80, stdout.rows || 24))
      await delay(intervalMs, undefined, { signal: ended.signal }).catch(() => {})
    }
  } catch (error) {
    // A server that hangs must not keep the page open.
    if (!ended.signal.aborted) throw error
  } finally {
    stdout.write(ansi.leave)
    if (stdin.isTTY) stdin.setRawMode(false).off('data', onKey).pause()
  }
}

/** Cuts a page to the size of the terminal, and erases what an earlier frame has left. */
export function toFrame(page: string, columns: number, rows: number): string {
  const lines = page.split('\n').slice(0, rows - 1)
  return ansi.home + lines.map((line) => `${line.slice(0, columns)}\x1b[K\n`).join('') + ansi.rest
}
