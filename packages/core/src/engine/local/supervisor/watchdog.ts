/** Notices when a model process is stuck, by two signs: pings without an answer, also at rest, and work without progress. */

/** A ping goes out at each tick. Ticks are counted, not time: an app that was stopped itself sends none. */
const tickMs = 1_000
/** So many pings without an answer: the event loop is stuck. */
const maxUnanswered = 5

export class Watch {
  readonly #ping: () => void
  readonly #onStuck: (reason: string) => void
  #timer: NodeJS.Timeout | undefined
  #unanswered = 0
  #steps = 0
  #stalled = 0
  #maxStalled = Number.POSITIVE_INFINITY

  constructor(ping: () => void, onStuck: (reason: string) => void) {
    this.#ping = ping
    this.#onStuck = onStuck
  }

  /** @param maxStalled so many ticks without a step: the native code is stuck */
  start(maxStalled: number): void {
    if (this.#maxStalled === Number.POSITIVE_INFINITY) this.#stalled = 0
    this.#maxStalled = maxStalled
    // One more call is no sign of life.
    this.#timer ??= setInterval(() => this.#tick(), tickMs)
    this.#timer.ref()
  }

  /** It has nothing to do, and still has to answer; the app does not stay for that. */
  rest(): void {
    this.#maxStalled = Number.POSITIVE_INFINITY
    this.#timer?.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#unanswered = 0
    this.rest()
  }

  onPong(steps: number): void {
    this.#unanswered = 0
    if (steps !== this.#steps) this.#stalled = 0
    this.#steps = steps
  }

  #tick(): void {
    if (this.#unanswered >= maxUnanswered) this.#onStuck('it stopped answering')
    else if (this.#stalled >= this.#maxStalled) this.#onStuck('it made no progress')
    this.#unanswered++
    this.#stalled++
    this.#ping()
  }
}
