/**
 * Detects a stuck model process. Such a process leaves pings unanswered, or makes no progress during a call.
 */

/**
 * Interval of the pings. Limits are counted in ticks and not in time, since a suspended app sends no pings.
 */
const tickMs = 1_000
/** From this number of unanswered pings on, the event loop of the process counts as stuck. */
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

  /** @param maxStalledTicks ticks without a step after which the native code counts as stuck */
  start(maxStalledTicks: number): void {
    if (this.#maxStalledTicks === Number.POSITIVE_INFINITY) this.#stalledTicks = 0
    this.#maxStalledTicks = maxStalledTicks
    // Keeps a running timer, since a further call does not prove that the process works.
    this.#timer ??= setInterval(() => this.#tick(), tickMs)
    this.#timer.ref()
  }

  /**
   * Stops watching progress. An idle process must still answer pings, but the timer does not keep the host
   * app running.
   */
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
