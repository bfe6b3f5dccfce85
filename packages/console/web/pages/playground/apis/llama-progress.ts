/** Progress of a request with `return_progress`: a field of llama.cpp's server, and `load_progress` of Modelmount. */
import type { AnswerPart } from './api.ts'

export interface ProgressFields {
  readonly load_progress?: { readonly fraction: number }
  readonly prompt_progress?: { readonly total: number; readonly processed: number }
}

export function* readProgress({ load_progress, prompt_progress }: ProgressFields): Generator<AnswerPart> {
  if (load_progress) yield { type: 'progress', progress: { phase: 'load', fraction: load_progress.fraction } }
  if (prompt_progress) {
    const { processed, total } = prompt_progress
    yield { type: 'progress', progress: { phase: 'prompt', fraction: processed / Math.max(1, total) } }
  }
}
