/**
 * Who is next, where only so many get in at once: one of each caller in turn, so that nobody's hundred calls are in front of another's
 * first. Bounded: where it is full, the last call of the caller with most of them is the one too many.
 */
import { LlmError } from '../errors.ts'

export interface FairQueueOptions {
  /** How many are inside at once. */
  readonly places: number
  /** How many wait, of all callers together. */
  readonly maxWaiting: number
  /** @default a clock that nobody can set, in milliseconds */
  readonly now?: (() => number) | undefined
}

interface Waiting {
  enter(): void
  refuse(error: LlmError): void
}

export class FairQueue {
  readonly #places: number
  readonly #maxWaiting: number
  readonly #now: () => number
  /** By caller, each in order of arrival; the first caller is the next. */
  readonly #lines = new Map<string, Waiting[]>()
  #waiting = 0
  #inside = 0
  /** How long one stays inside, of those that came lately. */
  #stayMs: number | undefined

  constructor({ places, maxWaiting, now = () => performance.now() }: FairQueueOptions) {
    this.#places = places
    this.#maxWaiting = maxWaiting
    this.#now = now
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Resolves with the way out, or with nothing once the signal has aborted. Rejects with `overloaded`, and how long the queue
   * takes, where too many wait.
   */
  async take(caller: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted || !(await this.#entered(caller, signal))) return undefined
    const enteredAt = this.#now()
    let isInside = true
    return () => {
      if (!isInside) return
      isInside = false
      this.#inside--
      const stayMs = this.#now() - enteredAt
      this.#stayMs = this.#stayMs === undefined ? stayMs : this.#stayMs + (stayMs - this.#stayMs) / 8
      this.#admit()
    }
  }

  #entered(caller: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#remove(caller, waiting)
        resolve(false)
      }
      const waiting: Waiting = {
        enter: () => {
          signal.removeEventListener('abort', leave)
          resolve(true)
        },
        refuse: (error) => {
          signal.removeEventListener('abort', leave)
          reject(error)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#lineOf(caller).push(waiting)
      this.#waiting++
      this.#admit()
      if (this.#waiting > this.#maxWaiting) this.#refuseOne()
    })
  }

  #admit(): void {
    while (this.#inside < this.#places) {
      const [next] = this.#lines
      if (!next) return
      const [caller, line] = next
      const waiting = line.shift()
      // Behind all others, if there is more of it.
      this.#lines.delete(caller)
      if (line.length > 0) this.#lines.set(caller, line)
      this.#waiting--
      this.#inside++
      waiting?.enter()
    }
  }

  /** Of several longest lines, that of who came last. */
  #refuseOne(): void {
    let longest: [caller: string, line: Waiting[]] | undefined
    for (const entry of this.#lines) if (!longest || entry[1].length >= longest[1].length) longest = entry
    const [caller, line] = longest ?? []
    const last = line?.at(-1)
    if (caller === undefined || !last) return
    this.#remove(caller, last)
    last.refuse(
      new LlmError('overloaded', 'Too many requests are waiting. Try again later.', {
        retryAfterMs: this.#emptyInMs(),
      }),
    )
  }

  #remove(caller: string, waiting: Waiting): void {
    const line = this.#lineOf(caller)
    line.splice(line.indexOf(waiting), 1)
    if (line.length === 0) this.#lines.delete(caller)
    this.#waiting--
  }

  #lineOf(caller: string): Waiting[] {
    const line = this.#lines.get(caller) ?? []
    this.#lines.set(caller, line)
    return line
  }

  #emptyInMs(): number {
    const rounds = Math.ceil(this.#waiting / this.#places)
    return Math.max(1_000, Math.ceil((this.#stayMs ?? 0) * rounds))
  }
}
