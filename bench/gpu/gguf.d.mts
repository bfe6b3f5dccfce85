/** Its weights have the type q4_0. */
export interface RandomModel {
  /** Path of a model or of a file of `keepTokenizer`. */
  readonly tokenizer: string
  readonly shape: '1b' | '8b' | 'tiny'
  /** Path of the new file. */
  readonly path: string
}

export function keepTokenizer(from: string, to: string): void
export function makeModel(model: RandomModel): void
