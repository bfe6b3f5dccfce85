/** Requests to a model's tokenizer. The model evaluates nothing. */
import type { LoadOptions } from './request.ts'

/** Text to turn into token ids. */
export interface TokenizeRequest {
  /** Name of the model whose vocabulary is used. */
  readonly model: string
  /** The text, which may be empty. */
  readonly text: string
  /** Adds the model's begin and end tokens. @default false */
  readonly addSpecial?: boolean
  /** Whether text such as `</s>` becomes a special token. If `false`, it stays plain text. @default true */
  readonly parseSpecial?: boolean
  /** How the model is loaded. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Token ids to turn into text. */
export interface DetokenizeRequest {
  /** Name of the model whose vocabulary is used. */
  readonly model: string
  /** Ids in this model's vocabulary. An unknown id is rejected. */
  readonly tokens: readonly number[]
  /** How the model is loaded. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Text of a token alone, or its bytes if they are a part of a character. */
export type TokenPiece = string | readonly number[]
