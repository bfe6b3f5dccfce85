/** Detects a stuck model process: it leaves pings unanswered, busy or idle, or makes no progress in a call. */

/** One ping per tick. Limits count ticks, not time: an app that is stopped sends no pings. */
const tickMs = 1_000
/** With more unanswered pings, the event loop counts as stuck. */
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

  /** @param maxStalledTicks with more ticks without a step, the native code counts as stuck */
  start(maxStalledTicks: number): void {
    if (this.#maxStalledTicks === Number.POSITIVE_INFINITY) this.#stalledTicks = 0
    this.#maxStalledTicks = maxStalledTicks
    // A running timer goes on: a further call is no sign of life.
    this.#timer ??= setInterval(() => this.#tick(), tickMs)
    this.#timer.ref()
  }

  /** An idle process has to answer pings, but does not keep the app alive. */
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
