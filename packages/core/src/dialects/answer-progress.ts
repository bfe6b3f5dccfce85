/**
 * Progress and timings of an answer, for clients that ask for them. Shape: llama.cpp's server, "POST /completion",
 * `return_progress` and `timings_per_token`.
 */
import { z } from 'zod'
import type { GenerateEvent, GenerationProgress, OutputTimings, TokenUsage } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { optional } from './fields.ts'

export const progressFields = {
  return_progress: optional(z.boolean()),
  timings_per_token: optional(z.boolean()),
}
type ProgressFields = z.output<z.ZodObject<typeof progressFields>>

/** Only a stream has progress. */
export const toProgressOptions = (
  { return_progress: progress, timings_per_token: timings }: ProgressFields,
  isStream: boolean,
): Pick<GenerateRequest, 'returnProgress' | 'returnTimings'> => ({
  ...(progress && isStream && { returnProgress: true }),
  ...(timings && isStream && { returnTimings: true }),
})

/** llama.cpp's server loads its model before it serves, so `load_progress` is ours. */
export const renderProgress = (progress: GenerationProgress): object =>
  progress.phase === 'load'
    ? { load_progress: { fraction: progress.fraction } }
    : {
        prompt_progress: {
          total: progress.total,
          cache: progress.cached,
          processed: progress.processed,
          time_ms: Math.round(progress.ms),
        },
      }

/** Measures one answer from its events. */
export class AnswerTimings {
  #cached = 0
  #evaluated = 0
  #generated = 0

  /** Returns the timings after an event, or `undefined` if the event has none. */
  add(event: GenerateEvent): object | undefined {
    if (event.type === 'start') {
      this.#cached = event.reusedTokens
      this.#evaluated = event.inputTokens - event.reusedTokens
      return undefined
    }
    if (event.type === 'progress') {
      if (event.phase === 'load') return undefined
      const { cached, processed, ms } = event
      const isFirst = processed === cached
      return toTimings([cached, processed - cached, 0], { promptMs: isFirst ? 0 : ms, generateMs: 0 })
    }
    if (event.type === 'end') return timingsOf(event)
    if (!('tokens' in event) || event.type === 'prompt') return undefined
    this.#generated += event.tokens
    return event.timings && toTimings([this.#cached, this.#evaluated, this.#generated], event.timings)
  }
}

/** Returns the timings of a whole answer. */
export const timingsOf = ({
  usage: { inputTokens, reusedTokens, outputTokens },
  timings,
}: {
  readonly usage: TokenUsage
  readonly timings: OutputTimings
}): object => toTimings([reusedTokens, inputTokens - reusedTokens, outputTokens], timings)

function toTimings(
  [cached, evaluated, generated]: readonly [cached: number, evaluated: number, generated: number],
  { promptMs, generateMs }: OutputTimings,
): object {
  // The evaluation of the prompt yields the first token.
  const steps = Math.max(0, generated - 1)
  return {
    cache_n: cached,
    prompt_n: evaluated,
    prompt_ms: promptMs,
    prompt_per_token_ms: divide(promptMs, evaluated),
    prompt_per_second: divide(1_000 * evaluated, promptMs),
    predicted_n: generated,
    predicted_ms: generateMs,
    predicted_per_token_ms: divide(generateMs, steps),
    predicted_per_second: divide(1_000 * steps, generateMs),
  }
}

const divide = (amount: number, by: number): number => (by > 0 ? amount / by : 0)
