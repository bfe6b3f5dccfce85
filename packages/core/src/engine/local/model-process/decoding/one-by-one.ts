/** Answers one after the other, over what the library makes public: for versions whose inside is another. */
import type { LlamaContextSequence, Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../../errors.ts'
import { uncached } from '../../../events.ts'
import type { Progress } from '../model.ts'
import type { Ending, Job, Runner } from '../runner.ts'
import { toEvaluateOptions } from './sampling.ts'

type ToBias = Parameters<typeof toEvaluateOptions>[1]

export class OneByOne implements Runner {
  readonly #sequence: LlamaContextSequence
  readonly #toBias: ToBias
  readonly #chunkSize: number
  readonly #progress: Progress
  #queue: Promise<unknown> = Promise.resolve()

  constructor(sequence: LlamaContextSequence, toBias: ToBias, chunkSize: number, progress: Progress) {
    this.#sequence = sequence
    this.#toBias = toBias
    this.#chunkSize = chunkSize
    this.#progress = progress
  }

  run(job: Job): Promise<Ending> {
    const turn = this.#queue.then(() => this.#answer(job))
    this.#queue = turn.catch(() => {})
    return turn.catch((cause) => {
      throw LlmError.from(cause)
    })
  }

  /** It pauses for no reader. */
  wake(): void {}

  async rest(): Promise<void> {
    await this.#queue
  }

  async #answer({ prompt, draw, grammar, limit, signal, onStart, onToken }: Job): Promise<Ending> {
    if (signal.aborted) return 'left'
    // What is public says how likely a token was among those that were left for the draw.
    if (draw.logprobs !== undefined)
      throw invalidRequest('This version of node-llama-cpp tells no logprobs.', { param: 'logprobs' })
    onStart({ reusedTokens: 0, ...uncached })
    await this.#sequence.clearHistory()
    const head = prompt.slice(0, -1)
    for (let start = 0; start < head.length; start += this.#chunkSize) {
      this.#progress.steps++
      if (signal.aborted) return 'left'
      await this.#sequence.evaluateWithoutGeneratingNewTokens(head.slice(start, start + this.#chunkSize))
    }
    if (limit === 0) return 'limit'
    const drawn: Token[] = []
    const options = {
      ...toEvaluateOptions(draw, this.#toBias, prompt, drawn),
      ...(grammar && { grammarEvaluationState: grammar.begin() }),
    }
    for await (const token of this.#sequence.evaluate(prompt.slice(-1), options)) {
      this.#progress.steps++
      if (signal.aborted) return 'left'
      drawn.push(token)
      if (!onToken(token)) return 'enough'
      if (drawn.length >= limit) return 'limit'
    }
    return 'end'
  }
}
