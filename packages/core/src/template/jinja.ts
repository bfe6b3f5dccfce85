/**
 * Renders prompts with the Jinja chat template of a GGUF file. `model-process/render.ts` runs this module in
 * a worker thread with a deadline, because a template can be hostile.
 */
import { Template } from '@huggingface/jinja'
import type { Message, PromptEnd, Tool } from '../engine/request.ts'
import { appendEndMark, resolvePromptEnd, toPrompt } from './continuation.ts'
import { toConversation } from './messages.ts'
import { createNeutralizer } from './neutralize.ts'
import { listRoleFallbacks } from './role-fallbacks.ts'
import { adaptMessages } from './special-messages.ts'
import {
  toDateVariables,
  toDefaultReasoning,
  toReasoningStrength,
  toReasoningSwitch,
} from './standard-variables.ts'

export interface ChatTemplate {
  readonly source: string
  readonly bosToken: string
  readonly eosToken: string
  /** Special tokens to treat as plain text in messages from users and tools. */
  readonly specialTokens?: readonly string[]
}

export interface RenderOptions {
  /** Whether the model should reason before it answers. If absent, the template decides. */
  readonly reasoning?: boolean | undefined
  readonly tools?: readonly Tool[] | undefined
  /** Additional template variables. They override the date and defaults, but not other variables. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined
  readonly promptEnd?: PromptEnd | undefined
}

/** Default template for models without a template, as in llama.cpp. */
export const chatMl =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** Renders messages to a prompt. If the template rejects all role fallbacks, throws its first error. */
export type ChatRenderer = (messages: readonly Message[], options?: RenderOptions) => string

/** Input of a template, for any implementation of Jinja. */
export interface TemplateInput {
  readonly variables: Readonly<Record<string, unknown>>
  readonly isContinued: boolean
}

/**
 * Parses a template once for all prompts, because parsing a large template takes longer than rendering it.
 * Throws the parser's error.
 */
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
        // Keeps the first error, because it concerns the original messages.
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
    { reasoning, tools = [], variables, promptEnd: requestedEnd }: RenderOptions = {},
    supportsSystemRole = true,
  ): TemplateInput => {
    const promptEnd = resolvePromptEnd(messages, requestedEnd)
    const isOpen = promptEnd === 'continue'
    const conversation = toConversation(messages, { tools, source, neutralize, supportsSystemRole })
    return {
      variables: {
        ...toDateVariables(new Date()),
        ...toDefaultReasoning(source),
        ...toReasoningStrength(variables),
        ...variables,
        ...(reasoning !== undefined && toReasoningSwitch(source, reasoning, variables)),
        ...conversation,
        messages: adaptMessages(
          isOpen ? appendEndMark(conversation.messages) : conversation.messages,
          source,
        ),
        add_generation_prompt: promptEnd === 'generation-prompt',
        bos_token: bosToken,
        eos_token: eosToken,
      },
      isContinued: isOpen,
    }
  }
}
