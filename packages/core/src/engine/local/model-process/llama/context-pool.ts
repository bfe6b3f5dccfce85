/** Pool of contexts that each evaluate one group of texts at a time. Contexts are created when needed. */
import { WaitQueue } from '../../../../util/wait-queue.ts'
import type { EngineCall } from '../../../engine.ts'
import { FairClock } from '../decoding/fair-clock.ts'

type PoolCaller = Required<Pick<EngineCall, 'signal' | 'tenant' | 'weight' | 'background'>>

export class ContextPool<Context> {
  readonly #create: () => Promise<Context>
  readonly #idle: Context[]
  #maxContexts: number
  #activeLimit = Number.POSITIVE_INFINITY
  #createdCount: number
  readonly #queue = new WaitQueue<PoolCaller>({
    select: (waiting) => this.#select(waiting),
    admit: (caller) => this.#active.push(caller),
  })
  readonly #active: PoolCaller[] = []
  /** Time for which each tenant has used contexts. */
  readonly #clock = new FairClock()
  #idleCallbacks: (() => void)[] = []

  /** @param maxContexts maximum number of contexts, including `first` */
  constructor(first: Context, create: () => Promise<Context>, maxContexts: number) {
    this.#create = create
    this.#idle = [first]
    this.#createdCount = 1
    this.#maxContexts = maxContexts
  }

  get size(): number {
    return this.#maxContexts
  }

  /** Number of groups that are evaluated. */
  get active(): number {
    return this.#active.length
  }

  /** Number of groups that wait for a context. */
  get waiting(): number {
    return this.#queue.size
  }

  /**
   * Limits the number of groups that are evaluated at a time. One is always allowed. Running groups continue.
   */
  limitActive(max: number): void {
    this.#activeLimit = Math.max(1, max)
    this.#queue.pump()
  }

  /** Runs the task with a context. Resolves with `undefined` if the signal aborts before admission. */
  async run<T>(caller: PoolCaller, task: (context: Context) => Promise<T>): Promise<T | undefined> {
    if (!(await this.#queue.wait(caller, caller.signal))) return undefined
    let context: Context | undefined
    const startedAt = performance.now()
    try {
      context = this.#idle.pop() ?? (await this.#createContext())
      if (context !== undefined) return await task(context)
    } finally {
      if (context !== undefined) this.#idle.push(context)
      this.#active.splice(this.#active.indexOf(caller), 1)
      this.#clock.charge(caller, performance.now() - startedAt)
      this.#queue.pump()
      if (this.#active.length === 0) for (const resolve of this.#idleCallbacks.splice(0)) resolve()
    }
    return this.run(caller, task)
  }

  /** Resolves when no group is active. */
  async whenIdle(): Promise<void> {
    if (this.#active.length > 0) await new Promise<void>((resolve) => this.#idleCallbacks.push(resolve))
  }

  /** Returns `undefined` if no further context can be created. The group then waits for an existing one. */
  async #createContext(): Promise<Context | undefined> {
    this.#createdCount++
    try {
      return await this.#create()
    } catch {
      this.#maxContexts = --this.#createdCount
      return undefined
    }
  }

  /**
   * Picks the oldest group of the tenant with the fewest active groups, relative to its weight. Of several such
   * tenants, the one that has used contexts for less time is next. Background groups run only while no foreground
   * group is active or waits.
   */
  #select(waiting: readonly PoolCaller[]): PoolCaller | undefined {
    if (this.#active.length >= Math.min(this.#maxContexts, this.#activeLimit)) return undefined
    this.#clock.setCompetitors([...this.#active, ...waiting])
    const countActive = ({ tenant, weight }: PoolCaller): number =>
      this.#active.filter((caller) => caller.tenant === tenant).length / weight
    const compare = (a: PoolCaller, b: PoolCaller): number =>
      countActive(a) - countActive(b) || this.#clock.timeOf(a.tenant) - this.#clock.timeOf(b.tenant)
    const foreground = waiting.filter(({ background }) => !background)
    const isForegroundBusy = foreground.length > 0 || this.#active.some(({ background }) => !background)
    return (isForegroundBusy ? foreground : waiting).reduce<PoolCaller | undefined>(
      (best, one) => (best && compare(best, one) <= 0 ? best : one),
      undefined,
    )
  }
}
