/**
 * Fields of llama.cpp's server: the progress of a request with `return_progress`, the timings of one with
 * `timings_per_token`. `load_progress` is Modelmount's.
 */
import type { AnswerPart, Usage } from './api.ts'

export interface LlamaFields {
  readonly load_progress?: { readonly fraction: number }
  readonly prompt_progress?: { readonly total: number; readonly processed: number }
  readonly timings?: { readonly cache_n: number; readonly predicted_per_second: number }
}

/** The speed of an answer, for its usage. Empty for one token, which has none. */
export const readSpeed = ({ timings }: LlamaFields): Pick<Usage, 'tokensPerSecond'> =>
  timings && timings.predicted_per_second > 0 ? { tokensPerSecond: timings.predicted_per_second } : {}

export function* readProgress({ load_progress, prompt_progress }: LlamaFields): Generator<AnswerPart> {
  if (load_progress) yield { type: 'progress', progress: { phase: 'load', fraction: load_progress.fraction } }
  if (prompt_progress) {
    const { processed, total } = prompt_progress
    yield { type: 'progress', progress: { phase: 'prompt', fraction: processed / Math.max(1, total) } }
  }
}
