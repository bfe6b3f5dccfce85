/** The answers to several prompts of one request: streamed one after the other, whole ones side by side. */
import { collect } from '../../engine/events.ts'
import { runConcurrently } from '../../util/run-concurrently.ts'
import type { FinishedTextCompletion, TextCompletion } from './render-text.ts'

/** Asks for the answer to one prompt. */
export type CompletionStarter = (signal: AbortSignal) => Promise<TextCompletion>

/** Resolves when the first has begun. A prompt waits for the answer to the one before it. */
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

/** So many prompts of one request are answered at a time: as many as a model has places for, where nobody says otherwise. */
const maxConcurrent = 4

/** Whole answers, in the order of their prompts. The first failure ends all. */
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
