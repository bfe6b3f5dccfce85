/** Lets background calls begin only while few calls of this app run at the upstream server. */
import { LlmError } from '../../errors.ts'
import { WaitQueue } from '../../util/wait-queue.ts'
import type { EngineCall } from '../engine.ts'

type WaitingCall = Pick<EngineCall, 'background' | 'signal'>

export class BackgroundTurns {
  /** Running calls, also those in the foreground. */
  #running = 0
  readonly #queue: WaitQueue<object>

  /** @param below number of running calls below which a background call begins */
  constructor(below: number) {
    this.#queue = new WaitQueue<object>({
      select: ([first]) => (this.#running < below ? first : undefined),
      admit: () => void this.#running++,
    })
  }

  /** Runs the work when the call may begin. Rejects with the reason of the signal if it aborts first. */
  async run<Result>(call: WaitingCall, work: () => Promise<Result>): Promise<Result> {
    if (!(await this.#begin(call))) throw call.signal.reason
    try {
      return await work()
    } finally {
      this.#end()
    }
  }

  /** Streams when the call may begin. Ends early, without an error, if the signal aborts first. */
  async *stream<Item>(call: WaitingCall, items: () => AsyncIterable<Item>): AsyncGenerator<Item> {
    if (!(await this.#begin(call))) return
    try {
      yield* items()
    } finally {
      this.#end()
    }
  }

  /** Rejects the calls that wait. */
  close(): void {
    this.#queue.rejectAll(new LlmError('overloaded', 'The engine was closed.'))
  }

  async #begin(call: WaitingCall): Promise<boolean> {
    if (call.background) return this.#queue.wait({}, call.signal)
    this.#running++
    return true
  }

  #end(): void {
    this.#running--
    this.#queue.pump()
  }
}
