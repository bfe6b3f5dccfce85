/** The chat template inside a GGUF: messages → prompt text. Pure; hostile templates are run behind a deadline. */
import { Template } from '@huggingface/jinja'
import type { Message, Part, Tool } from '../engine/request.ts'
import { toConversation } from './messages.ts'
import { neutralizer } from './neutralize.ts'

export interface ChatTemplate {
  readonly source: string
  readonly bosToken: string
  readonly eosToken: string
}

export interface RenderOptions {
  /** Whether the model is to think first; absent, the template decides. */
  readonly reasoning?: boolean | undefined
  readonly tools?: readonly Tool[] | undefined
  /** Variables of the template beside those that are always there. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined
  /** Spellings that stay text where users and tools say them. */
  readonly specialTokens?: readonly string[] | undefined
}

/** Models without a template of their own get ChatML, as llama.cpp does it. */
export const chatMl =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** Templates trim messages and close them with tokens of their own, so where the last one ends is marked. */
const endMark = '\uE000'

/** From messages to a prompt. Throws what the template raises. */
export type ChatPrompt = (messages: readonly Message[], options?: RenderOptions) => string

/**
 * Large templates take longer to be parsed than to be filled. A trailing assistant message is left open, to be continued,
 * unless it calls tools. Throws what the parser raises.
 */
export function parseChat({ source, bosToken, eosToken }: ChatTemplate): ChatPrompt {
  const template = new Template(source)
  return (messages, { reasoning, tools = [], variables, specialTokens = [] } = {}) => {
    const last = messages.at(-1)
    const isContinued = last?.role === 'assistant' && last.content.every(({ type }) => type !== 'tool-call')
    const conversation = toConversation(neutralized(messages, specialTokens), tools, source)
    const prompt = template.render({
      ...variables,
      ...conversation,
      messages: isContinued ? marked(conversation.messages) : conversation.messages,
      add_generation_prompt: !isContinued,
      bos_token: bosToken,
      eos_token: eosToken,
      ...(reasoning !== undefined && { enable_thinking: reasoning, thinking: reasoning }),
      // Seed-OSS counts instead.
      ...(reasoning === false && { thinking_budget: 0 }),
    })
    const end = isContinued ? prompt.lastIndexOf(endMark) : -1
    return end === -1 ? prompt : prompt.slice(0, end)
  }
}

const marked = <M extends { readonly content: string }>(messages: readonly M[]): readonly M[] =>
  messages.map((message, index) =>
    index === messages.length - 1 ? { ...message, content: message.content.trimEnd() + endMark } : message,
  )

/** What the app and the model say stays as it is. */
function neutralized(messages: readonly Message[], tokens: readonly string[]): readonly Message[] {
  if (tokens.length === 0) return messages
  const neutralize = neutralizer(tokens)
  const inPart = (part: Part): Part => {
    if (part.type === 'tool-call') return part
    return part.type === 'tool-result'
      ? { ...part, content: part.content.map(inPart) }
      : { ...part, text: neutralize(part.text) }
  }
  return messages.map((message) =>
    message.role === 'system' || message.role === 'assistant'
      ? message
      : { ...message, content: message.content.map(inPart) },
  )
}
