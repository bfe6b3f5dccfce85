/** What is asked of a model's vocabulary. Nothing is put through the model for it. */
import type { LoadOptions } from './request.ts'

export interface TokenizeRequest {
  readonly model: string
  readonly text: string
  /** With the tokens that every text of this model begins and ends with. @default false */
  readonly addSpecial?: boolean
  /** `false`: the name of a special token, such as `</s>`, is text like any other. @default true */
  readonly parseSpecial?: boolean
  readonly load?: LoadOptions
}

export interface DetokenizeRequest {
  readonly model: string
  /** Ids in this model's vocabulary; one that it does not have is refused. */
  readonly tokens: readonly number[]
  readonly load?: LoadOptions
}
