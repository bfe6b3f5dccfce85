/**
 * Splits typed lines into messages and commands. A message between `"""` and `"""` may have several lines.
 */

export type Entry =
  | { readonly kind: 'message'; readonly text: string }
  /** Such as `/set system You are Bob.` */
  | { readonly kind: 'command'; readonly text: string }

export class MessageReader {
  #open: { readonly command: string; readonly lines: readonly string[] } | undefined

  /** Whether a multi-line message is open. */
  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /**
   * Returns a message or a command. Returns undefined while a multi-line message is open, and for an empty
   * line.
   */
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

  /** Discards an open multi-line message. */
  drop(): void {
    this.#open = undefined
  }
}
