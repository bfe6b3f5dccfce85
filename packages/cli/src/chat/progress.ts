/** Progress of the load of a model and of the evaluation of a prompt, as lines of a stream report it. */
import type { Operation } from '../format/bar.ts'

/** Fields of the lines of `/api/chat` and `/api/generate` with `return_progress`. An Ollama server has none of them. */
export interface ProgressFields {
  readonly load_progress?: { readonly fraction: number }
  /** Numbers of tokens. */
  readonly prompt_progress?: { readonly total: number; readonly processed: number }
}

/** Asks for progress if a terminal can show it. */
export const askForProgress = (): { readonly return_progress?: true } =>
  process.stderr.isTTY ? { return_progress: true } : {}

export function toOperation({
  load_progress: load,
  prompt_progress: prompt,
}: ProgressFields): Omit<Operation, 'resumed' | 'elapsedMs'> | undefined {
  if (load) return { status: 'loading model', total: 1, completed: load.fraction, unit: 'percent' }
  return (
    prompt && {
      status: 'evaluating prompt',
      total: prompt.total,
      completed: prompt.processed,
      unit: 'tokens',
    }
  )
}
