/** Prints a streamed answer: the thinking set apart, then the content. */
import { showWaiting } from '../format/waiting.ts'
import { type ProgressFields, toOperation } from './progress.ts'

/** A line in the stream of `/api/chat` or `/api/generate`, with the fields that are used here. */
export interface AnswerLine extends Metrics, ProgressFields {
  readonly message?: { readonly content: string; readonly thinking?: string }
  readonly response?: string
  readonly thinking?: string
  readonly done: boolean
}

/** Metrics of an answer. The durations are in nanoseconds. */
export interface Metrics {
  readonly total_duration?: number
  readonly load_duration?: number
  readonly prompt_eval_count?: number
  readonly prompt_eval_duration?: number
  readonly eval_count?: number
  readonly eval_duration?: number
}

export interface AnswerSummary {
  readonly text: string
  /** Metrics from the last line of the stream. Absent if the answer was stopped. */
  readonly metrics?: Metrics
}

/** Prints an answer and returns it. When the signal aborts, the result has the text so far. */
export async function printAnswer(
  lines: AsyncIterable<AnswerLine>,
  { hideThinking, signal }: { readonly hideThinking: boolean; readonly signal?: AbortSignal },
): Promise<AnswerSummary> {
  const waiting = showWaiting(process.stderr)
  let text = ''
  let isThinking = false
  try {
    for await (const line of lines) {
      waiting.report(toOperation(line))
      const { content = line.response ?? '', thinking = line.thinking ?? '' } = line.message ?? {}
      if (thinking && !hideThinking) {
        waiting.stop()
        process.stdout.write(isThinking ? faint(thinking) : `Thinking...\n${faint(thinking.trimStart())}`)
        isThinking = true
      }
      if (content) {
        waiting.stop()
        process.stdout.write(isThinking ? `\n...done thinking.\n\n${content}` : content)
        isThinking = false
        text += content
      }
      if (line.done) return { text, metrics: line }
    }
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    waiting.stop()
  }
  return { text }
}

/** Grey text, unless stdout is no terminal or `NO_COLOR` is set. */
export const faint = (text: string): string =>
  process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[90m${text}\x1b[0m` : text
