/**
 * Runs jobs one at a time through the public API of node-llama-cpp. Used for versions of node-llama-cpp
 * without the internals that `llama/addon.ts` expects.
 *
 * Jobs run in order of arrival, whatever their tenant. A job does not pause for a client that is behind, because
 * all other jobs would wait with it. Its unread output is bounded by its maximum length.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../../errors.ts'
import { uncached } from '../../../events.ts'
import type { StepCounter } from '../model.ts'
import {
  type GenerationJob,
  nothingCached,
  type Runner,
  type RunnerActivity,
  type RunOutcome,
} from '../runner.ts'
import { type BiasTools, toEvaluateOptions } from './sampling.ts'

export class SequentialRunner implements Runner {
  readonly #sequence: LlamaContextSequence
  readonly #biasTools: BiasTools
  readonly #chunkSize: number
  readonly #progress: StepCounter
  #queue: Promise<unknown> = Promise.resolve()
  #isDecoding = false
  /** Jobs that run or wait. */
  #jobs = 0

  constructor(
    sequence: LlamaContextSequence,
    biasTools: BiasTools,
    chunkSize: number,
    progress: StepCounter,
  ) {
    this.#sequence = sequence
    this.#biasTools = biasTools
    this.#chunkSize = chunkSize
    this.#progress = progress
  }

  run(job: GenerationJob): Promise<RunOutcome> {
    this.#jobs++
    const outcome = this.#queue.then(async () => {
      this.#isDecoding = true
      try {
        return await this.#generate(job)
      } finally {
        await this.#sequence.clearHistory()
        this.#isDecoding = false
        this.#jobs--
      }
    })
    this.#queue = outcome.catch(() => {})
    return outcome.catch((cause) => {
      throw LlmError.from(cause)
    })
  }

  get isDecoding(): boolean {
    return this.#isDecoding
  }

  get activity(): RunnerActivity {
    const activeSequences = this.#isDecoding ? 1 : 0
    const waitingSequences = this.#jobs - activeSequences
    return { activeSequences, waitingSequences, ...nothingCached }
  }

  /** Deletes nothing, since no job leaves a state. */
  async deleteStates(): Promise<number> {
    return 0
  }

  /** No job leaves a state. */
  cachedLength(): number {
    return 0
  }

  /** Does nothing, since jobs never pause. */
  wake(): void {}

  async whenIdle(): Promise<void> {
    await this.#queue
  }

  async #generate({
    prompt,
    sampling,
    grammar,
    maxTokens,
    signal,
    onStart,
    onPrefill,
    onToken,
  }: GenerationJob): Promise<RunOutcome> {
    if (signal.aborted) return 'aborted'
    // The public API reports probabilities only as they are after the sampling steps.
    if (sampling.logprobs !== undefined)
      throw invalidRequest('This version of node-llama-cpp does not support logprobs. Install 3.22.1.', {
        param: 'logprobs',
      })
    onStart({ reusedTokens: 0, ...uncached })
    const head = prompt.slice(0, -1)
    for (let start = 0; start < head.length; start += this.#chunkSize) {
      this.#progress.steps++
      if (signal.aborted) return 'aborted'
      await this.#sequence.evaluateWithoutGeneratingNewTokens(head.slice(start, start + this.#chunkSize))
      onPrefill?.(Math.min(head.length, start + this.#chunkSize))
    }
    if (maxTokens === 0) return 'limit'
    const sampled: Token[] = []
    const options = {
      ...toEvaluateOptions(sampling, this.#biasTools, prompt, sampled),
      ...(grammar && { grammarEvaluationState: grammar.createState() }),
    }
    for await (const token of this.#sequence.evaluate(prompt.slice(-1), options)) {
      this.#progress.steps++
      if (signal.aborted) return 'aborted'
      if (sampled.length === 0) onPrefill?.(prompt.length)
      sampled.push(token)
      if (!onToken(token)) return 'stopped'
      if (sampled.length >= maxTokens) return 'limit'
    }
    return 'end'
  }
}
