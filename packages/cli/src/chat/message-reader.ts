/** Lines that somebody types become messages and commands. What stands between `"""` and `"""` is one, however many lines it has. */

export type Entry =
  | { readonly kind: 'message'; readonly text: string }
  /** `/set system You are Bob.` */
  | { readonly kind: 'command'; readonly text: string }

export class MessageReader {
  #open: { readonly command: string; readonly lines: readonly string[] } | undefined

  /** More lines are to come. */
  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** Nothing while more lines are to come, and for an empty one. */
  take(line: string): Entry | undefined {
    const [, command = '', opening] = (!this.#open && /^(\/set\s+system\s+)?"""(.*)$/s.exec(line)) || []
    if (!this.#open && opening === undefined) {
      if (line.trim() === '') return undefined
      return { kind: line.startsWith('/') ? 'command' : 'message', text: line }
    }
    const open = this.#open ?? { command, lines: [] }
    const [, ending] = /^(.*)"""\s*$/s.exec(opening ?? line) ?? []
    const lines = [...open.lines, ending ?? opening ?? line]
    this.#open = ending === undefined ? { ...open, lines } : undefined
    if (this.#open) return undefined
    const text = open.command + lines.join('\n')
    return { kind: open.command ? 'command' : 'message', text }
  }

  /** What was begun is forgotten. */
  drop(): void {
    this.#open = undefined
  }
}
