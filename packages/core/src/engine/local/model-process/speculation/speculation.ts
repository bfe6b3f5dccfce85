/** Guesses the next tokens of outputs, so that one step can verify several tokens of one sequence. */
import type { Token } from 'node-llama-cpp'
import type { Decoder } from '../decoding/decoder.ts'
import { maxTargetRows } from '../decoding/prefill-plan.ts'
import type { RunningSequence } from '../decoding/running-sequence.ts'
import { DraftPlanner } from './draft-planner.ts'
import { HitRates } from './hit-rates.ts'
import { PromptLookup } from './prompt-lookup.ts'

export class Speculation {
  readonly #decoder: Decoder
  readonly #planner = new DraftPlanner()
  readonly #hitRates = new HitRates()
  readonly #sources = new WeakMap<RunningSequence, PromptLookup>()

  /** @param decoder must be able to truncate sequences */
  constructor(decoder: Decoder) {
    this.#decoder = decoder
  }

  /**
   * Returns the tokens to verify in the next step of a sequence that decodes alone. Empty if that does not pay. The
   * logits of several rows differ in rounding errors, so deterministic sequences get no guesses.
   */
  guess(running: RunningSequence): readonly Token[] {
    const { job, slot, lastToken, sampledCount } = running
    if (job.isDeterministic || lastToken === undefined) return []
    const maxCount = Math.min(this.#decoder.chunkSize, maxTargetRows, job.maxTokens - sampledCount) - 1
    const { tokens, hitRates } = this.#sourceOf(running).guess(slot.tokens, lastToken, maxCount)
    // No token follows the end of an output.
    const end = tokens.findIndex((token) => this.#decoder.isEog(token))
    return tokens.slice(0, this.#planner.plan(end === -1 ? hitRates : hitRates.slice(0, end)))
  }

  /**
   * @param guessCount number of guesses in the step
   * @param sampledCount number of tokens that the step has sampled
   */
  observe(guessCount: number, sampledCount: number, ms: number): void {
    this.#planner.observe(guessCount + 1, sampledCount, ms)
  }

  #sourceOf(running: RunningSequence): PromptLookup {
    const known = this.#sources.get(running)
    if (known) return known
    const created = new PromptLookup(this.#hitRates)
    this.#sources.set(running, created)
    return created
  }
}
