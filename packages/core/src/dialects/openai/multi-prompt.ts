/** Completions of several prompts in one request: streamed in order, or collected concurrently. */
import { collect } from '../../engine/events.ts'
import { runConcurrently } from '../../util/run-concurrently.ts'
import type { FinishedTextCompletion, TextCompletion } from './render-text.ts'

/** Starts the completion of one prompt. */
export type CompletionStarter = (signal: AbortSignal) => Promise<TextCompletion>

/** Resolves when the first completion has started. The other starters are called one by one, while `texts` is read. */
export async function streamInOrder(
  [first, ...others]: readonly CompletionStarter[],
  signal: AbortSignal,
): Promise<{ readonly started: readonly TextCompletion[]; readonly texts: AsyncIterable<TextCompletion> }> {
  const started = first ? [await first(signal)] : []
  async function* texts(): AsyncGenerator<TextCompletion> {
    yield* started
    for (const start of others) yield await start(signal)
  }
  return { started, texts: texts() }
}

/** Maximum number of concurrent prompts in one request. It equals a model's default number of slots. */
const maxConcurrent = 4

/** Returns completions in the order of their prompts. The first failure cancels the remaining prompts. */
export async function collectConcurrently(
  starters: readonly CompletionStarter[],
  clientSignal: AbortSignal,
): Promise<readonly FinishedTextCompletion[]> {
  const answers: FinishedTextCompletion[] = []
  await runConcurrently(starters, maxConcurrent, clientSignal, async (start, index, signal) => {
    const text = await start(signal)
    answers[index] = { ...text, answer: await collect(text.generation) }
  })
  clientSignal.throwIfAborted()
  return answers
}
