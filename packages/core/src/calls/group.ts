/** One call that generates answers to several prompts, or several answers to each prompt. */
import { type Generation, openGeneration } from './generation.ts'
import type { GenerationSettings } from './generation-events.ts'

type GroupSettings = Pick<GenerationSettings, 'engine' | 'budget' | 'run'>

/** Steps of one answer. Each promise also resolves if the answer ends before the step, and never rejects. */
interface AnswerSteps {
  /** The engine has evaluated the prompt. */
  readonly evaluated: Step
  /** The engine has finished the answer. */
  readonly generated: Step
}

interface Step {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

export class GenerationGroup {
  readonly #settings: GroupSettings
  readonly #isStream: boolean
  readonly #steps: readonly AnswerSteps[]

  constructor(settings: GroupSettings, isStream: boolean) {
    this.#settings = settings
    this.#isStream = isStream
    this.#steps = settings.run.call.requests.map(() => ({ evaluated: createStep(), generated: createStep() }))
  }

  /**
   * Starts the answer to one request of the group. Call it once for each request, in any order. Further answers to a
   * prompt start when the engine has evaluated the prompt for the first one, because they can use its KV state.
   *
   * @param signal aborts this answer only; the signal of the call aborts all answers
   */
  start(index: number, signal?: AbortSignal): Promise<Generation> {
    const { call } = this.#settings.run
    const answerSignal = signal ? AbortSignal.any([signal, call.signal]) : call.signal
    const first = index - (index % call.answersPerPrompt)
    return first === index
      ? this.#open(index, answerSignal)
      : this.#stepsOf(first).evaluated.promise.then(() => this.#open(index, answerSignal))
  }

  /**
   * Starts all answers. Those to one prompt start when the engine has finished those to the previous prompt, however
   * slowly they are read. Read them prompt by prompt, too.
   */
  startInOrder(): readonly Promise<Generation>[] {
    const { requests, answersPerPrompt } = this.#settings.run.call
    let previous: Promise<unknown> = Promise.resolve()
    let current: Promise<void>[] = []
    return requests.map((_, index) => {
      if (index % answersPerPrompt === 0) {
        previous = Promise.all(current)
        current = []
      }
      current.push(this.#stepsOf(index).generated.promise)
      const started = previous.then(() => this.start(index))
      started.catch(() => {}) // The reader reports the error.
      return started
    })
  }

  #open(index: number, signal: AbortSignal): Promise<Generation> {
    const { evaluated, generated } = this.#stepsOf(index)
    return openGeneration(
      {
        ...this.#settings,
        part: index,
        signal,
        onEvaluated: evaluated.resolve,
        onGenerated: () => {
          evaluated.resolve()
          generated.resolve()
        },
      },
      this.#isStream,
    )
  }

  #stepsOf(index: number): AnswerSteps {
    return this.#steps[index] as AnswerSteps
  }
}

function createStep(): Step {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
