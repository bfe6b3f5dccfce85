import { randomBytes } from 'node:crypto'
import type { Token } from 'node-llama-cpp'
import type { OutputPart } from '../../../../template/output-part.ts'
import { StopMatcher } from '../../../../template/stop.ts'
import {
  type FinishReason,
  type GenerateEvent,
  type OutputTimings,
  type SampledToken,
  uncached,
} from '../../../events.ts'
import type { CacheUsage } from '../kv-cache/cache-plan.ts'
import type { RuntimeModel } from '../model.ts'
import { type PreparedRun, tailTokens } from '../prompt/prepare-run.ts'
import type { RunOutcome } from '../runner.ts'
import type { Logprobs } from './decoder.ts'
import { LogprobAligner } from './logprob-aligner.ts'
import { toSampledToken } from './token-text.ts'

/** Turns the tokens of one run into events, from `start` to `end`. */
export class OutputEmitter {
  readonly #run: PreparedRun
  readonly #model: RuntimeModel
  readonly #emit: (event: GenerateEvent) => void
  readonly #stops: StopMatcher
  readonly #aligner: LogprobAligner<SampledToken> | undefined
  readonly #isSingleCall: boolean
  readonly #sampled: Token[] = []
  readonly #incompleteCalls: number[] = []
  #cacheUsage: CacheUsage = { reusedTokens: 0, ...uncached }
  #startedAt = 0
  /** Prompt tokens that the last `progress` event has reported. */
  #processed = 0
  #firstTokenAt = 0
  #reportedTokens = 0
  #callCount = 0
  #isCallLimitReached = false
  #stopSequence: string | undefined

  constructor(run: PreparedRun, model: RuntimeModel, emit: (event: GenerateEvent) => void) {
    const { input, stop, logprobs } = run.request
    this.#run = run
    this.#model = model
    this.#emit = emit
    this.#stops = new StopMatcher(stop)
    this.#aligner = logprobs === undefined ? undefined : new LogprobAligner()
    this.#isSingleCall = input.kind === 'chat' && input.toolChoice?.parallel === false
  }

  /** @param divergesAt number of leading tokens that the prompt shares with the closest cached prompt */
  start(usage: CacheUsage, divergesAt?: number): void {
    const { prompt, request } = this.#run
    this.#cacheUsage = usage
    this.#startedAt = performance.now()
    this.#emit({
      type: 'start',
      model: request.model,
      inputTokens: prompt.length,
      ...usage,
      fingerprint: this.#model.fingerprint,
      ...(divergesAt !== undefined && {
        divergence: {
          tokens: divergesAt,
          behind: this.#model.detokenizeWithSpecial(
            prompt.slice(Math.max(0, divergesAt - tailTokens), divergesAt),
          ),
        },
      }),
    })
    if (request.returnProgress) this.#emitProgress(usage.reusedTokens)
  }

  /** @param evaluated number of tokens in the KV state, which may contain output, and may be smaller than before */
  updateProgress(evaluated: number): void {
    if (evaluated > this.#processed && evaluated <= this.#run.prompt.length) this.#emitProgress(evaluated)
  }

  #emitProgress(processed: number): void {
    this.#processed = processed
    const { reusedTokens: cached } = this.#cacheUsage
    this.#emit({
      ...{ type: 'progress', phase: 'prompt', total: this.#run.prompt.length, cached, processed },
      ms: performance.now() - this.#startedAt,
    })
  }

  updateCacheUsage(usage: CacheUsage): void {
    this.#cacheUsage = usage
  }

  /**
   * Returns `false` if the output ends here: at a stop sequence, or before a second tool call if only one is
   * allowed.
   */
  push(token: Token, logprobs?: Logprobs): boolean {
    this.#firstTokenAt ||= performance.now()
    this.#sampled.push(token)
    const completed = this.#run.detokenizer.push(token)
    if (logprobs) this.#aligner?.push(toSampledToken(token, logprobs, this.#model), completed)
    const { text, stop } = this.#stops.push(completed)
    if (text !== '') this.#emitParts(this.#run.parser.push(text))
    this.#stopSequence = stop
    return stop === undefined && !this.#isCallLimitReached
  }

  /** Emits the buffered text and the `end` event. */
  finish(outcome: Exclude<RunOutcome, 'aborted'>): void {
    this.#flush(outcome === 'limit')
    const { request, prompt } = this.#run
    const reason = this.#toFinishReason(outcome)
    const isModelEnd = reason === 'stop' && this.#stopSequence === undefined
    const hasOnlyWholeCalls = this.#callCount > 0 && this.#incompleteCalls.length === 0
    // node-llama-cpp does not return the end token. Without an end token, the next message would continue
    // this one.
    const endTokens = isModelEnd && this.#model.eot !== undefined ? [this.#model.eot] : []
    this.#emit({
      type: 'end',
      finishReason: isModelEnd && hasOnlyWholeCalls ? 'tool-calls' : reason,
      ...(this.#incompleteCalls.length > 0 && { incompleteCalls: this.#incompleteCalls }),
      ...(this.#stopSequence !== undefined && { stopSequence: this.#stopSequence }),
      usage: { inputTokens: prompt.length, ...this.#cacheUsage, outputTokens: this.#sampled.length },
      timings: { loadMs: 0, ...this.#measureTimings() },
      ...(request.returnTokens && { tokens: [...prompt, ...this.#sampled, ...endTokens] }),
    })
  }

  #flush(isCut: boolean): void {
    const { detokenizer, parser } = this.#run
    if (this.#stopSequence === undefined) {
      const { text, stop } = this.#stops.push(detokenizer.flush())
      this.#stopSequence = stop
      const rest = stop === undefined ? text + this.#stops.flush() : text
      if (rest !== '') this.#emitParts(parser.push(rest))
    }
    this.#emitParts(parser.flush(isCut && this.#stopSequence === undefined))
  }

  #toFinishReason(outcome: RunOutcome): FinishReason {
    if (outcome !== 'limit' || this.#stopSequence !== undefined) return 'stop'
    return this.#sampled.length === this.#run.request.maxTokens ? 'length' : 'context'
  }

  #emitParts(parts: readonly OutputPart[]): void {
    for (const part of parts) {
      // Some formats do not mark the end of tool calls. The grammar cannot exclude a second call in these
      // formats.
      this.#isCallLimitReached ||= this.#isSingleCall && part.type === 'tool-call' && this.#callCount > 0
      if (this.#isCallLimitReached) return
      if (part.type === 'tool-call') {
        this.#callCount++
        this.#emit({ ...part, id: `call_${randomBytes(12).toString('hex')}` })
      } else if (part.type === 'tool-incomplete') this.#incompleteCalls.push(part.index)
      else if (part.type === 'tool-arguments') {
        this.#emit({ ...part, tokens: this.#takeUnreportedTokens(), ...this.#timings() })
        this.#aligner?.skip()
      } else {
        const logprobs = this.#aligner && { logprobs: this.#aligner.take(part.text) }
        this.#emit({ ...part, tokens: this.#takeUnreportedTokens(), ...logprobs, ...this.#timings() })
      }
    }
  }

  #timings(): { timings?: OutputTimings } {
    return this.#run.request.returnTimings ? { timings: this.#measureTimings() } : {}
  }

  #measureTimings(): OutputTimings {
    const now = performance.now()
    return {
      promptMs: (this.#firstTokenAt || now) - this.#startedAt,
      generateMs: this.#firstTokenAt ? now - this.#firstTokenAt : 0,
    }
  }

  /** Returns the number of tokens sampled since the last event with a token count. */
  #takeUnreportedTokens(): number {
    const tokens = this.#sampled.length - this.#reportedTokens
    this.#reportedTokens = this.#sampled.length
    return tokens
  }
}
