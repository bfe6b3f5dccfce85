/** The chat template inside a GGUF: messages → prompt text. Pure; hostile templates are run behind a deadline. */
import { Template } from '@huggingface/jinja'
import type { Message, Part } from '../engine/request.ts'

export interface ChatTemplate {
  readonly source: string
  readonly bosToken: string
  readonly eosToken: string
}

/** Models without a template of their own get ChatML, as llama.cpp does it. */
export const chatMl =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** Templates trim messages and close them with tokens of their own, so where the last one ends is marked. */
const endMark = '\uE000'

/** From messages to a prompt. Throws what the template raises. */
export type ChatPrompt = (messages: readonly Message[], reasoning?: boolean) => string

/**
 * Large templates take longer to be parsed than to be filled. A trailing assistant message is left open, to be continued.
 * `reasoning` is whether the model is to think first; absent, the template decides. Throws what the parser raises.
 */
export function parseChat({ source, bosToken, eosToken }: ChatTemplate): ChatPrompt {
  const template = new Template(source)
  return (messages, reasoning) => {
    const plain = messages.map(({ role, content }) => {
      const thoughts = textOf(content, 'reasoning')
      return {
        role,
        content: textOf(content, 'text'),
        ...(thoughts !== '' && { reasoning_content: thoughts }),
      }
    })
    const last = plain.at(-1)
    const continued = last?.role === 'assistant'
    if (continued) last.content = last.content.trimEnd() + endMark
    const prompt = template.render({
      messages: plain,
      add_generation_prompt: !continued,
      bos_token: bosToken,
      eos_token: eosToken,
      ...(reasoning !== undefined && { enable_thinking: reasoning }),
    })
    const end = continued ? prompt.lastIndexOf(endMark) : -1
    return end === -1 ? prompt : prompt.slice(0, end)
  }
}

const textOf = (content: readonly Part[], type: Part['type']): string =>
  content.map((part) => (part.type === type ? part.text : '')).join('')
