/** Messages between the renderer, its worker thread and the process for native templates. */
import type { InfillContext } from '../../../template/go-prompt.ts'
import type { ChatTemplate, RenderOptions, TemplateInput } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'

/** Longest prompt in characters, so that a loop in a template cannot fill the memory of the model process. */
export const maxPromptLength = 64 * 1024 * 1024

export interface RenderJob {
  readonly template: ChatTemplate
  /** Go template that replaces the model's own template. */
  readonly goTemplate?: string
  readonly messages: readonly Message[]
  readonly options: RenderOptions
  /**
   * Prefix and suffix of an infill request, which are rendered instead of the messages. Only with a Go
   * template.
   */
  readonly gap?: InfillContext
}
export type RenderResult =
  | { readonly text: string }
  /** `filling` is input for a second attempt with llama.cpp's renderer, which supports more of Jinja. */
  | { readonly error: string; readonly filling?: TemplateInput }

export interface NativeJob {
  readonly source: string
  readonly variables: TemplateInput['variables']
}
/** `text` is absent if llama.cpp cannot render the template or the prompt is too long. */
export interface NativeResult {
  readonly text?: string
}
