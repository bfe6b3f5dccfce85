/** Messages between the renderer, its worker thread and the process for native templates. */
import type { InfillContext } from '../../../template/go-prompt.ts'
import type { ChatTemplate, RenderOptions, TemplateInput } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'

/** Longest prompt in characters, so that a loop in a template cannot fill the memory of the model process. */
export const maxPromptLength = 64 * 1024 * 1024

export interface RenderJob {
  readonly template: ChatTemplate
  /** Replaces the model's own template. */
  readonly goTemplate?: string
  readonly messages: readonly Message[]
  readonly options: RenderOptions
  /** Replaces the messages. Go templates only. */
  readonly gap?: InfillContext
}
export type RenderResult =
  | { readonly text: string }
  /** `filling`: input for llama.cpp's renderer, which supports more of Jinja and gets the rest of the deadline. */
  | { readonly error: string; readonly filling?: TemplateInput; readonly spentMs: number }

export interface NativeJob {
  readonly source: string
  readonly variables: TemplateInput['variables']
}
/** `text` is absent where llama.cpp rejects the template. */
export interface NativeResult {
  readonly text?: string
}
