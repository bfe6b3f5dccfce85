/** Admits a limited number of calls per model to the engine. Callers take turns. */
import { FairQueue } from '../../limits/fair-queue.ts'
import type { Call } from '../call.ts'
import type { CallStep } from '../step.ts'

export interface QueueOptions {
  /** How many calls of one model may be in the engine at once. */
  readonly permits: number
  /** How many calls of one model may wait, for all callers together. */
  readonly maxQueued: number
  /** How long a call may wait, in ms. */
  readonly timeoutMs: number
}

export class QueueStep implements CallStep {
  readonly name = 'queue'
  readonly mayWait = true
  readonly #options: QueueOptions
  /** Queues by model. A queue is removed when no call uses it. */
  readonly #queues = new Map<string, { readonly queue: FairQueue; users: number }>()

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Rejects with an `LlmError` `overloaded` when the queue is full, or when the call has waited too long. */
  async before(call: Call): Promise<void> {
    // The engine itself schedules background calls and all other kinds of calls.
    if (call.kind !== 'generate' || call.isBackground) return
    const { modelName, caller, signal } = call
    const entry = this.#queues.get(modelName) ?? { queue: new FairQueue(this.#options), users: 0 }
    this.#queues.set(modelName, entry)
    entry.users++
    const leave = (): void => {
      if (--entry.users === 0) this.#queues.delete(modelName)
    }
    try {
      const release = await entry.queue.acquire(caller?.id ?? '', signal)
      if (!release) return leave()
      call.leaveQueue = () => {
        release()
        leave()
      }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** A slow reader must not keep the permit. */
  onGenerated(call: Call): void {
    this.after(call)
  }

  after(call: Call): void {
    call.leaveQueue?.()
    call.leaveQueue = undefined
  }
}
