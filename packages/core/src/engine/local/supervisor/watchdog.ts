/** Notices when a model process is stuck, by two signs: pings without an answer, also at rest, and work without progress. */

/** A ping goes out at each tick. Ticks are counted, not time: an app that was stopped itself sends none. */
const tickMs = 1_000
/** So many pings without an answer: the event loop is stuck. */
const maxUnansweredPings = 5

export class Watchdog {
  readonly #ping: () => void
  readonly #onStuck: (reason: string) => void
  #timer: NodeJS.Timeout | undefined
  #unansweredPings = 0
  #steps = 0
  #stalledTicks = 0
  #maxStalledTicks = Number.POSITIVE_INFINITY

  constructor(ping: () => void, onStuck: (reason: string) => void) {
    this.#ping = ping
    this.#onStuck = onStuck
  }

  /** @param maxStalledTicks so many ticks without a step: the native code is stuck */
  start(maxStalledTicks: number): void {
    if (this.#maxStalledTicks === Number.POSITIVE_INFINITY) this.#stalledTicks = 0
    this.#maxStalledTicks = maxStalledTicks
    // One more call is no sign of life.
    this.#timer ??= setInterval(() => this.#tick(), tickMs)
    this.#timer.ref()
  }

  /** It has nothing to do, and still has to answer; the app does not stay for that. */
  pause(): void {
    this.#maxStalledTicks = Number.POSITIVE_INFINITY
    this.#timer?.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#unansweredPings = 0
    this.pause()
  }

  onPong(steps: number): void {
    this.#unansweredPings = 0
    if (steps !== this.#steps) this.#stalledTicks = 0
    this.#steps = steps
  }

  #tick(): void {
    if (this.#unansweredPings >= maxUnansweredPings) this.#onStuck('it stopped answering')
    else if (this.#stalledTicks >= this.#maxStalledTicks) this.#onStuck('it made no progress')
    this.#unansweredPings++
    this.#stalledTicks++
    this.#ping()
  }
}
