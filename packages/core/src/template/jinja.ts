/** The chat template inside a GGUF: messages → prompt text. Pure; hostile templates are run behind a deadline. */
import { Template } from '@huggingface/jinja'
import type { Message, Tool } from '../engine/request.ts'
import { appendEndMark, isContinued, toPrompt } from './continuation.ts'
import { toConversation } from './messages.ts'
import { createNeutralizer } from './neutralize.ts'
import { listRoleFallbacks } from './role-fallbacks.ts'

export interface ChatTemplate {
  readonly source: string
  readonly bosToken: string
  readonly eosToken: string
  /** Spellings that stay text where users and tools say them. */
  readonly specialTokens?: readonly string[]
}

export interface RenderOptions {
  /** Whether the model is to think first; absent, the template decides. */
  readonly reasoning?: boolean | undefined
  readonly tools?: readonly Tool[] | undefined
  /** Variables of the template beside those that are always there. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined
}

/** Models without a template of their own get ChatML, as llama.cpp does it. */
export const chatMl =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** From messages to a prompt. Throws what the template raises, where it takes them in no order. */
export type ChatRenderer = (messages: readonly Message[], options?: RenderOptions) => string

/** What a template is filled with, by whatever can do that. */
export interface TemplateInput {
  readonly variables: Readonly<Record<string, unknown>>
  readonly isContinued: boolean
}

/** Large templates take longer to be parsed than to be filled. Throws what the parser raises. */
export function parseChatTemplate(template: ChatTemplate): ChatRenderer {
  const parsed = new Template(template.source)
  const toTemplateInput = createTemplateInputBuilder(template)
  return (messages, options) => {
    let firstError: unknown
    for (const fallback of listRoleFallbacks(messages)) {
      try {
        const templateInput = toTemplateInput(fallback.messages, options, fallback.supportsSystemRole)
        return toPrompt(parsed.render({ ...templateInput.variables }), templateInput)
      } catch (cause) {
        // What it says of the messages as they were is to the point.
        firstError ??= cause
      }
    }
    throw firstError
  }
}

export function createTemplateInputBuilder({ source, bosToken, eosToken, specialTokens = [] }: ChatTemplate) {
  const neutralize = createNeutralizer(specialTokens)
  return (
    messages: readonly Message[],
    { reasoning, tools = [], variables }: RenderOptions = {},
    supportsSystemRole = true,
  ): TemplateInput => {
    const isOpen = isContinued(messages)
    const conversation = toConversation(messages, { tools, source, neutralize, supportsSystemRole })
    return {
      variables: {
        ...variables,
        ...conversation,
        messages: isOpen ? appendEndMark(conversation.messages) : conversation.messages,
        add_generation_prompt: !isOpen,
        bos_token: bosToken,
        eos_token: eosToken,
        ...(reasoning !== undefined && { enable_thinking: reasoning, thinking: reasoning }),
        // Seed-OSS counts instead.
        ...(reasoning === false && { thinking_budget: 0 }),
      },
      isContinued: isOpen,
    }
  }
}
