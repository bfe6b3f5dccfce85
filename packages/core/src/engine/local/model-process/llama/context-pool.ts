/** Contexts that texts take turns with, made when they are needed. */
import type { EngineCall } from '../../../engine.ts'

type Caller = Required<Pick<EngineCall, 'signal' | 'tenant' | 'background'>>

interface Waiting {
  readonly caller: Caller
  enter(): void
}

export class Pool<Context> {
  readonly #make: () => Promise<Context>
  readonly #idle: Context[]
  #most: number
  #limit = Number.POSITIVE_INFINITY
  #made: number
  #waiting: Waiting[] = []
  #inside: Caller[] = []
  #onRest: (() => void)[] = []

  /** @param most how many there are at last, `first` among them */
  constructor(first: Context, make: () => Promise<Context>, most: number) {
    this.#make = make
    this.#idle = [first]
    this.#made = 1
    this.#most = most
  }

  get size(): number {
    return this.#most
  }

  /** From the next turn on no more than so many at a time. */
  limit(most: number): void {
    this.#limit = Math.max(1, most)
    this.#admit()
  }

  /** Resolves with nothing where the signal aborts before its turn. */
  async with<T>(caller: Caller, work: (context: Context) => Promise<T>): Promise<T | undefined> {
    if (!(await this.#turn(caller))) return undefined
    let context: Context | undefined
    try {
      context = this.#idle.pop() ?? (await this.#another())
      if (context !== undefined) return await work(context)
    } finally {
      if (context !== undefined) this.#idle.push(context)
      this.#inside.splice(this.#inside.indexOf(caller), 1)
      this.#admit()
      if (this.#inside.length === 0) for (const rested of this.#onRest.splice(0)) rested()
    }
    return this.with(caller, work)
  }

  /** Resolves when none is at work. */
  async rest(): Promise<void> {
    if (this.#inside.length > 0) await new Promise<void>((resolve) => this.#onRest.push(resolve))
  }

  /** Nothing where there cannot be more: whoever wants one waits for another. */
  async #another(): Promise<Context | undefined> {
    this.#made++
    try {
      return await this.#make()
    } catch {
      this.#most = --this.#made
      return undefined
    }
  }

  #turn(caller: Caller): Promise<boolean> {
    const { signal } = caller
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting)
        resolve(false)
      }
      const waiting: Waiting = {
        caller,
        enter: () => {
          signal.removeEventListener('abort', leave)
          resolve(true)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(waiting)
      this.#admit()
    })
  }

  #admit(): void {
    while (this.#inside.length < Math.min(this.#most, this.#limit)) {
      const next = this.#next()
      if (!next) return
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      this.#inside.push(next.caller)
      next.enter()
    }
  }

  /** Whose texts are inside in the smallest number, and among those who came first; the background when nobody else is. */
  #next(): Waiting | undefined {
    const insideOf = ({ caller: { tenant } }: Waiting): number =>
      this.#inside.filter((caller) => caller.tenant === tenant).length
    const foreground = this.#waiting.filter(({ caller }) => !caller.background)
    const isBusy = foreground.length > 0 || this.#inside.some(({ background }) => !background)
    return (isBusy ? foreground : this.#waiting).reduce<Waiting | undefined>(
      (best, one) => (best && insideOf(best) <= insideOf(one) ? best : one),
      undefined,
    )
  }
}
