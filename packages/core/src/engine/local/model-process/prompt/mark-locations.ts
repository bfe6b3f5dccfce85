/** Aligns a prompt with the same prompt with marks, and finds the token positions of the marks. */
import type { Token } from 'node-llama-cpp'
import type { ModelVocabulary } from '../model.ts'

/** Maximum number of tokens that marks change, in each of the prompts. Each mark has one to three tokens. */
const maxChangedTokens = 64

/** Number of tokens of the prompt before each mark. */
export class MarkLocations {
  readonly #positions = new Map<string, number>()
  #end = 0

  /** @returns for a mark that was not found, where the alignment of the prompts ended */
  readonly of = (mark: string): number => this.#positions.get(mark) ?? this.#end

  add(mark: string, position: number): void {
    if (!this.#positions.has(mark)) this.#positions.set(mark, position)
  }

  endAt(position: number): void {
    this.#end = position
  }
}

export function locateMarks(
  prompt: readonly Token[],
  marked: readonly Token[],
  isMark: (character: string) => boolean,
  model: Pick<ModelVocabulary, 'detokenize'>,
): MarkLocations {
  const locations = new MarkLocations()
  let [at, markedAt] = [0, 0]
  for (;;) {
    while (at < prompt.length && prompt[at] === marked[markedAt]) {
      at++
      markedAt++
    }
    locations.endAt(at)
    if (markedAt >= marked.length) return locations
    const change = findChange(prompt, at, marked, markedAt, isMark, model)
    if (!change) return locations
    for (const mark of change.marks) locations.add(mark, at)
    at += change.length
    markedAt += change.markedLength
  }
}

interface Change {
  readonly marks: readonly string[]
  readonly length: number
  readonly markedLength: number
}

/** Finds the shortest tokens whose texts are the same without marks. */
function findChange(
  prompt: readonly Token[],
  at: number,
  marked: readonly Token[],
  markedAt: number,
  isMark: (character: string) => boolean,
  model: Pick<ModelVocabulary, 'detokenize'>,
): Change | undefined {
  const textOf = (tokens: readonly Token[], start: number, length: number): string =>
    model.detokenize(tokens.slice(start, start + length), tokens.slice(Math.max(0, start - 1), start), true)
  let [length, markedLength] = [0, 1]
  while (Math.max(length, markedLength) <= maxChangedTokens) {
    const text = textOf(prompt, at, length)
    const characters = [...textOf(marked, markedAt, markedLength)]
    const unmarked = characters.filter((character) => !isMark(character)).join('')
    if (unmarked === text) return { marks: characters.filter(isMark), length, markedLength }
    if (lengthOf(unmarked) > lengthOf(text) && at + length < prompt.length) length++
    else if (markedAt + markedLength < marked.length) markedLength++
    else return undefined
  }
  return undefined
}

/** Length without incomplete characters at the end. */
const lengthOf = (text: string): number => text.replace(/\uFFFD+$/, '').length
