/** Pool of contexts, which are created when they are needed. */
import type { EngineCall } from '../../../engine.ts'

type PoolCaller = Required<Pick<EngineCall, 'signal' | 'tenant' | 'background'>>

interface QueuedText {
  readonly caller: PoolCaller
  admit(): void
}

export class ContextPool<Context> {
  readonly #create: () => Promise<Context>
  readonly #idle: Context[]
  #maxContexts: number
  #activeLimit = Number.POSITIVE_INFINITY
  #createdCount: number
  #queue: QueuedText[] = []
  #active: PoolCaller[] = []
  #idleCallbacks: (() => void)[] = []

  /** @param maxContexts maximum number of contexts, `first` included */
  constructor(first: Context, create: () => Promise<Context>, maxContexts: number) {
    this.#create = create
    this.#idle = [first]
    this.#createdCount = 1
    this.#maxContexts = maxContexts
  }

  get size(): number {
    return this.#maxContexts
  }

  /** Limits how many contexts work at a time, from the next task on. */
  limitActive(max: number): void {
    this.#activeLimit = Math.max(1, max)
    this.#admitQueued()
  }

  /** Resolves with `undefined` when the signal aborts before a context is free. */
  async run<T>(caller: PoolCaller, task: (context: Context) => Promise<T>): Promise<T | undefined> {
    if (!(await this.#waitForTurn(caller))) return undefined
    let context: Context | undefined
    try {
      context = this.#idle.pop() ?? (await this.#createContext())
      if (context !== undefined) return await task(context)
    } finally {
      if (context !== undefined) this.#idle.push(context)
      this.#active.splice(this.#active.indexOf(caller), 1)
      this.#admitQueued()
      if (this.#active.length === 0) for (const resolve of this.#idleCallbacks.splice(0)) resolve()
    }
    return this.run(caller, task)
  }

  /** Resolves when no context is at work. */
  async whenIdle(): Promise<void> {
    if (this.#active.length > 0) await new Promise<void>((resolve) => this.#idleCallbacks.push(resolve))
  }

  /** Returns `undefined` where memory has no room for another. Then the task waits for an existing one. */
  async #createContext(): Promise<Context | undefined> {
    this.#createdCount++
    try {
      return await this.#create()
    } catch {
      this.#maxContexts = --this.#createdCount
      return undefined
    }
  }

  #waitForTurn(caller: PoolCaller): Promise<boolean> {
    const { signal } = caller
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#queue = this.#queue.filter((one) => one !== queued)
        resolve(false)
      }
      const queued: QueuedText = {
        caller,
        admit: () => {
          signal.removeEventListener('abort', onAbort)
          resolve(true)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#queue.push(queued)
      this.#admitQueued()
    })
  }

  #admitQueued(): void {
    while (this.#active.length < Math.min(this.#maxContexts, this.#activeLimit)) {
      const next = this.#selectNext()
      if (!next) return
      this.#queue.splice(this.#queue.indexOf(next), 1)
      this.#active.push(next.caller)
      next.admit()
    }
  }

  /** The tenant with the fewest active texts, then first come, first served. The background runs only alone. */
  #selectNext(): QueuedText | undefined {
    const countActive = ({ caller: { tenant } }: QueuedText): number =>
      this.#active.filter((caller) => caller.tenant === tenant).length
    const foreground = this.#queue.filter(({ caller }) => !caller.background)
    const isForegroundBusy = foreground.length > 0 || this.#active.some(({ background }) => !background)
    return (isForegroundBusy ? foreground : this.#queue).reduce<QueuedText | undefined>(
      (best, one) => (best && countActive(best) <= countActive(one) ? best : one),
      undefined,
    )
  }
}
