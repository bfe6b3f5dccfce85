/** Requests to a model's tokenizer. The model evaluates nothing. */
import type { LoadOptions } from './request.ts'

export interface TokenizeRequest {
  readonly model: string
  readonly text: string
  /** Adds the model's begin and end tokens. @default false */
  readonly addSpecial?: boolean
  /** Whether text such as `</s>` becomes a special token. If `false`, it stays plain text. @default true */
  readonly parseSpecial?: boolean
  readonly load?: LoadOptions
}

export interface DetokenizeRequest {
  readonly model: string
  /** Ids in this model's vocabulary. An unknown id is rejected. */
  readonly tokens: readonly number[]
  readonly load?: LoadOptions
}

/** Text of a token alone, or its bytes if they are a part of a character. */
export type TokenPiece = string | readonly number[]
