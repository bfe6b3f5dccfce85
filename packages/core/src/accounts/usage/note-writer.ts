/**
 * Writes the notes of running calls, so that they cost little: one statement contains all notes that are due, and
 * begins 100 ms after the last one at the earliest. Only a reader that waits for its note makes it begin at once.
 */
const pauseMs = 100

export class NoteWriter {
  readonly #store: (ids: () => readonly string[]) => Promise<void>
  /** Ids of the calls whose notes the next write contains. */
  readonly #due = new Set<string>()
  /** The next write, until it begins. */
  #next: Promise<void> | undefined
  #endPause: (() => void) | undefined
  #beganAt = Number.NEGATIVE_INFINITY

  /** @param store stores the notes of the calls. Calls `ids` when earlier writes have ended */
  constructor(store: (ids: () => readonly string[]) => Promise<void>) {
    this.#store = store
  }

  /** Resolves when the note of the call is stored. */
  write(id: string): Promise<void> {
    this.#due.add(id)
    this.#next ??= this.#writeNext()
    return this.#next
  }

  /** Begins the next write now. */
  hurry(): void {
    this.#endPause?.()
  }

  async #writeNext(): Promise<void> {
    await this.#pause()
    await this.#store(() => {
      const ids = [...this.#due]
      this.#due.clear()
      this.#next = undefined
      this.#beganAt = performance.now()
      return ids
    })
  }

  async #pause(): Promise<void> {
    const restMs = this.#beganAt + pauseMs - performance.now()
    if (restMs <= 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, restMs)
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#endPause = undefined
  }
}
