/** The answers to several prompts of one request: streamed one after the other, whole ones side by side. */
import { collect } from '../../engine/events.ts'
import { sideBySide } from '../../util/side-by-side.ts'
import type { Text, WholeText } from './render-text.ts'

/** Asks for the answer to one prompt. */
export type Question = (signal: AbortSignal) => Promise<Text>

/** Resolves when the first has begun. A prompt waits for the answer to the one before it. */
export async function inTurn(
  [first, ...others]: readonly Question[],
  signal: AbortSignal,
): Promise<{ readonly begun: readonly Text[]; readonly texts: AsyncIterable<Text> }> {
  const begun = first ? [await first(signal)] : []
  async function* texts(): AsyncGenerator<Text> {
    yield* begun
    for (const ask of others) yield await ask(signal)
  }
  return { begun, texts: texts() }
}

/** So many prompts of one request are answered at a time: as many as a model has places for, where nobody says otherwise. */
const atATime = 4

/** Whole answers, in the order of their prompts. The first failure ends all. */
export async function atOnce(
  questions: readonly Question[],
  leaves: AbortSignal,
): Promise<readonly WholeText[]> {
  const answers: WholeText[] = []
  await sideBySide(questions, atATime, leaves, async (ask, index, signal) => {
    const text = await ask(signal)
    answers[index] = { ...text, answer: await collect(text.generation) }
  })
  leaves.throwIfAborted()
  return answers
}
