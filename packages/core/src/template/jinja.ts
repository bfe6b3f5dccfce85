/** The chat template inside a GGUF: messages → prompt text. Pure; hostile templates are run behind a deadline. */
import { Template } from '@huggingface/jinja'
import type { Message, Tool } from '../engine/request.ts'
import { isContinued, marked, toPrompt } from './continuation.ts'
import { toConversation } from './messages.ts'
import { neutralizer } from './neutralize.ts'
import { turnsOf } from './role-fallbacks.ts'

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
export type ChatPrompt = (messages: readonly Message[], options?: RenderOptions) => string

/** What a template is filled with, by whatever can do that. */
export interface Filling {
  readonly variables: Readonly<Record<string, unknown>>
  readonly isContinued: boolean
}

/** Large templates take longer to be parsed than to be filled. Throws what the parser raises. */
export function parseChat(template: ChatTemplate): ChatPrompt {
  const parsed = new Template(template.source)
  const fillingOf = fillings(template)
  return (messages, options) => {
    let refusal: unknown
    for (const turns of turnsOf(messages)) {
      try {
        const filling = fillingOf(turns.messages, options, turns.takesSystem)
        return toPrompt(parsed.render({ ...filling.variables }), filling)
      } catch (cause) {
        // What it says of the messages as they were is to the point.
        refusal ??= cause
      }
    }
    throw refusal
  }
}

export function fillings({ source, bosToken, eosToken, specialTokens = [] }: ChatTemplate) {
  const neutralize = neutralizer(specialTokens)
  return (
    messages: readonly Message[],
    { reasoning, tools = [], variables }: RenderOptions = {},
    takesSystem = true,
  ): Filling => {
    const isOpen = isContinued(messages)
    const conversation = toConversation(messages, { tools, source, neutralize, takesSystem })
    return {
      variables: {
        ...variables,
        ...conversation,
        messages: isOpen ? marked(conversation.messages) : conversation.messages,
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
