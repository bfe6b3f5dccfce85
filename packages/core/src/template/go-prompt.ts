/**
 * Renders prompts with a Go template. `model-process/render.ts` runs this module in a worker thread with a
 * deadline, because a template can be hostile.
 */
import type { Message } from '../engine/request.ts'
import { appendEndMark, resolvePromptEnd, toPrompt } from './continuation.ts'
import { type GoTemplate, parseGoTemplate, type ThinkSettings } from './go-template/index.ts'
import type { ChatTemplate, RenderOptions } from './jinja.ts'
import { toPlainConversation } from './messages.ts'
import { createNeutralizer } from './neutralize.ts'

/** Text before and after the gap that the model fills (fill-in-the-middle). */
export interface InfillContext {
  readonly prefix: string
  readonly suffix: string
}

export interface GoPromptRenderer {
  renderChat(messages: readonly Message[], options?: RenderOptions): string
  renderInfill(gap: InfillContext): string
}

/** Throws `GoTemplateError`. The methods of the renderer also throw it. */
export function parseGoPrompt(
  source: string,
  { specialTokens = [] }: Pick<ChatTemplate, 'specialTokens'>,
): GoPromptRenderer {
  const template = parseGoTemplate(source)
  const neutralize = createNeutralizer(specialTokens)
  return {
    renderChat: (messages, options = {}) => renderChat(template, neutralize, messages, options),
    renderInfill: ({ prefix, suffix }) =>
      template.renderInfill(neutralize(prefix), neutralize(suffix)).toWellFormed(),
  }
}

function renderChat(
  template: GoTemplate,
  neutralize: (text: string) => string,
  messages: readonly Message[],
  { tools = [], ...options }: RenderOptions,
): string {
  const isOpen = resolvePromptEnd(messages) === 'continue'
  const supportsTools = template.features.tools
  const conversation = toPlainConversation(messages, { tools, supportsTools, neutralize })
  const rendered = template.renderChat(
    isOpen ? appendEndMark(conversation) : conversation,
    tools,
    toThinkSettings(options),
  )
  return toPrompt(rendered, { isContinued: isOpen })
}

function toThinkSettings({ reasoning, variables = {} }: RenderOptions): ThinkSettings {
  const { reasoning_effort: level } = variables
  return { think: reasoning, ...(typeof level === 'string' && { level }) }
}
