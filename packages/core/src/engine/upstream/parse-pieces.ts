/** Parses the events or lines of an upstream's answer. */
import type { AnswerPiece } from './upstream-api.ts'

/**
 * Yields the pieces of each chunk together. If an event fails, the pieces before it still arrive, since the caller pays for
 * them.
 */
export async function* parsePieces<Item>(
  chunks: AsyncIterable<readonly Item[]>,
  parse: (item: Item) => readonly AnswerPiece[],
): AsyncGenerator<readonly AnswerPiece[]> {
  for await (const items of chunks) {
    const pieces: AnswerPiece[] = []
    let failure: { readonly error: unknown } | undefined
    try {
      for (const item of items) pieces.push(...parse(item))
    } catch (error) {
      failure = { error }
    }
    if (pieces.length > 0) yield pieces
    if (failure) throw failure.error
  }
}
