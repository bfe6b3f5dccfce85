/** One call that generates answers to several prompts. */
import { type Generation, openGeneration } from './generation.ts'
import type { GenerationSettings } from './generation-events.ts'

type GroupSettings = Pick<GenerationSettings, 'engine' | 'budget' | 'run'>

export class GenerationGroup {
  readonly #settings: GroupSettings
  readonly #isStream: boolean

  constructor(settings: GroupSettings, isStream: boolean) {
    this.#settings = settings
    this.#isStream = isStream
  }

  /**
   * Starts the answer to one request of the group. Call it once for each request, in any order.
   *
   * @param signal aborts this answer only; the signal of the call aborts all answers
   */
  start(index: number, signal?: AbortSignal): Promise<Generation> {
    const { call } = this.#settings.run
    return this.#open(index, signal ? AbortSignal.any([signal, call.signal]) : call.signal)
  }

  /**
   * Starts all answers in order. Each one starts when the engine has finished the previous one, however slowly
   * that is read. Read them in order, too.
   */
  startInOrder(): readonly Promise<Generation>[] {
    const { call } = this.#settings.run
    let previous: Promise<void> = Promise.resolve()
    return call.requests.map((_, index) => {
      let onGenerated: () => void = () => {}
      const generated = new Promise<void>((resolve) => {
        onGenerated = resolve
      })
      const started = previous.then(() => this.#open(index, call.signal, onGenerated))
      started.catch(() => {}) // The reader reports the error.
      previous = generated
      return started
    })
  }

  #open(index: number, signal: AbortSignal, onGenerated?: () => void): Promise<Generation> {
    return openGeneration(
      { ...this.#settings, part: index, signal, ...(onGenerated && { onGenerated }) },
      this.#isStream,
    )
  }
}
