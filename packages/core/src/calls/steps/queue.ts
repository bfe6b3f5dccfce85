/**
 * Admits a limited number of calls per model to the engine. Tenants take turns. Calls that only use the tokenizer
 * have queues of their own, so that they take no permits of generations.
 */
import { FairQueue } from '../../limits/fair-queue.ts'
import type { Call } from '../call.ts'
import type { CallKind } from '../kind.ts'
import type { CallStep } from '../step.ts'

export interface QueueOptions {
  /** How many calls of one queue may be in the engine at once. */
  readonly permits: number
  /** How many calls of one queue may wait, for all tenants together. */
  readonly maxQueued: number
  /** How long a call may wait, in ms. */
  readonly timeoutMs: number
  /** Permits of a model, if they are not `permits`. */
  readonly permitsOf?: (model: string) => number | undefined
}

/** Calls that wait in one queue of a model, of which there can be two. */
export interface QueuedCalls {
  readonly model: string
  readonly waiting: number
}

interface QueueEntry {
  readonly modelName: string
  readonly queue: FairQueue
  users: number
}

export class QueueStep implements CallStep {
  readonly name = 'queue'
  readonly mayWait = true
  readonly #options: QueueOptions
  /** Queues by `queueKeyOf`. A queue is removed when no call uses it. */
  readonly #queues = new Map<string, QueueEntry>()

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Rejects with an `LlmError` `overloaded` when the queue is full, or when the call has waited too long. */
  async before(call: Call): Promise<void> {
    // The engine schedules background calls, embeddings and loads itself.
    const key = call.isBackground ? undefined : queueKeyOf(call)
    if (key === undefined) return
    const { tenant, weight, signal, modelName } = call
    const entry = this.#queues.get(key) ?? { modelName, queue: this.#createQueue(call), users: 0 }
    this.#queues.set(key, entry)
    entry.users++
    const leave = (): void => {
      if (--entry.users === 0) this.#queues.delete(key)
    }
    try {
      const release = await entry.queue.acquire(tenant, signal, weight)
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

  /** Models with waiting calls. */
  waiting(): readonly QueuedCalls[] {
    return [...this.#queues.values()].flatMap(({ modelName: model, queue: { queued: waiting } }) =>
      waiting > 0 ? [{ model, waiting }] : [],
    )
  }

  /** Returns the names of models whose queue admits no further call. */
  fullQueues(): readonly string[] {
    return [...this.#queues.values()].filter(({ queue }) => queue.isFull).map(({ modelName }) => modelName)
  }

  #createQueue({ modelName }: Call): FairQueue {
    const { permitsOf, ...options } = this.#options
    return new FairQueue({ ...options, permits: permitsOf?.(modelName) ?? options.permits })
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

const tokenizerKinds: readonly CallKind[] = ['count', 'render', 'tokenize', 'detokenize']

/** Returns `undefined` for calls without a queue. */
function queueKeyOf({ kind, modelName }: Call): string | undefined {
  if (kind === 'generate') return `generate ${modelName}`
  return tokenizerKinds.includes(kind) ? `tokenizer ${modelName}` : undefined
}
