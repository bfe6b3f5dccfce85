/** Asks each replica again and again whether it can take calls. */
import type { ResolvedFleetOptions } from './options.ts'
import type { Replica } from './replica.ts'

type ProbeSettings = NonNullable<ResolvedFleetOptions['probe']>

/** Part of an interval that is random, so that the probes of app processes do not come at once. */
const jitter = 0.2

export class HealthProbes {
  readonly #settings: ProbeSettings
  readonly #closing = new AbortController()
  readonly #timers = new Map<Replica, NodeJS.Timeout>()

  constructor(settings: ProbeSettings) {
    this.#settings = settings
  }

  /** Begins to probe a replica, which is then watched until it is removed. */
  add(replica: Replica): void {
    this.#schedule(replica, 0)
  }

  remove(replica: Replica): void {
    clearTimeout(this.#timers.get(replica))
    this.#timers.delete(replica)
  }

  close(): void {
    this.#closing.abort()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  /** Looks again soon after an ejection: its time may be shorter than the interval. */
  onEject(replica: Replica): void {
    if (this.#timers.has(replica)) this.#schedule(replica, this.#delayOf(replica))
  }

  #schedule(replica: Replica, ms: number): void {
    clearTimeout(this.#timers.get(replica))
    const timer = setTimeout(() => void this.#probe(replica), ms)
    timer.unref()
    this.#timers.set(replica, timer)
  }

  async #probe(replica: Replica): Promise<void> {
    const { path, timeoutMs } = this.#settings
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)])
    const error = await replica.engine.probe(path, signal).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    if (this.#closing.signal.aborted || !this.#timers.has(replica)) return
    replica.onProbe(error)
    // Reads the list of models again when it is old, so that calls need not wait for it.
    if (error === undefined) void replica.engine.listModels()
    this.#schedule(replica, this.#delayOf(replica))
  }

  #delayOf(replica: Replica): number {
    const { intervalMs } = this.#settings
    const { ejectedUntil } = replica.health
    if (ejectedUntil !== undefined) return Math.max(1, ejectedUntil - performance.now())
    return intervalMs * (1 - jitter / 2 + jitter * Math.random())
  }
}
