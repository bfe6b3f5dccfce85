/** A template in Go's language as the chat template of a model: messages → prompt text. Pure; hostile ones are run behind a deadline. */
import type { Message } from '../engine/request.ts'
import { isContinued, marked, toPrompt } from './continuation.ts'
import { type GoTemplate, parseGoTemplate, type Thinking } from './go-template/index.ts'
import type { ChatTemplate, RenderOptions } from './jinja.ts'
import { toPlainConversation } from './messages.ts'
import { neutralizer } from './neutralize.ts'

/** What is around a gap. */
export interface Gap {
  readonly prefix: string
  readonly suffix: string
}

export interface GoPrompt {
  chat(messages: readonly Message[], options?: RenderOptions): string
  fill(gap: Gap): string
}

/** Throws `GoTemplateError`, as what it returns does. */
export function parseGoPrompt(
  source: string,
  { specialTokens = [] }: Pick<ChatTemplate, 'specialTokens'>,
): GoPrompt {
  const template = parseGoTemplate(source)
  const neutralize = neutralizer(specialTokens)
  return {
    chat: (messages, options = {}) => chat(template, neutralize, messages, options),
    fill: ({ prefix, suffix }) => template.fill(neutralize(prefix), neutralize(suffix)).toWellFormed(),
  }
}

function chat(
  template: GoTemplate,
  neutralize: (text: string) => string,
  messages: readonly Message[],
  { tools = [], ...options }: RenderOptions,
): string {
  const open = isContinued(messages)
  const takesTools = template.uses.tools
  const conversation = toPlainConversation(messages, { tools, takesTools, neutralize })
  const said = template.prompt(open ? marked(conversation) : conversation, tools, thinkingOf(options))
  return toPrompt(said, { isContinued: open })
}

function thinkingOf({ reasoning, variables = {} }: RenderOptions): Thinking {
  const { reasoning_effort: level } = variables
  return { think: reasoning, ...(typeof level === 'string' && { level }) }
}
