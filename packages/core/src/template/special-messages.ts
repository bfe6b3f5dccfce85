/** Adapts messages to templates that differ from OpenAI's shape. */
import type { TemplateMessage, ToolResponse } from './template-message.ts'

/** A message whose content can be a list of typed parts. */
interface AdaptedMessage extends Omit<TemplateMessage, 'content'> {
  readonly content: string | readonly object[]
}

export function adaptMessages(
  messages: readonly TemplateMessage[],
  source: string,
): readonly AdaptedMessage[] {
  if (isOlderGemma(source)) return mergeToolResponses(messages)
  if (hasTypedReasoning(source)) return messages.map(withTypedReasoning)
  return trimsText(source) ? messages.map(withTrimmedText) : messages
}

/** The first templates of Gemma 4. Newer ones also accept messages of the role `tool`, and say so in a comment. */
const isOlderGemma = (source: string): boolean =>
  source.includes("'<|tool_call>call:'") && !source.includes('{#- OpenAI Chat Completions:')

/** Ministral 3. */
const hasTypedReasoning = (source: string): boolean => source.includes("block['type'] == 'thinking'")

/** StepFun 3.5. Its model tends to loop after white space around a text. */
const trimsText = (source: string): boolean =>
  source.includes('You have access to the following functions in JSONSchema format')

/** Moves results and the answer after them into the message with the calls. */
function mergeToolResponses(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const merged: TemplateMessage[] = []
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as TemplateMessage
    if (!message.tool_calls) {
      merged.push(message)
      continue
    }
    const responses: ToolResponse[] = []
    for (let next = messages[at + 1]; next?.role === 'tool'; next = messages[++at + 1])
      responses.push({ name: next.name ?? next.tool_call_id ?? '', response: parseOrKeep(next.content) })
    const answer = messages[at + 1]
    const isAnswered = responses.length > 0 && answer?.role === 'assistant' && !answer.tool_calls
    if (isAnswered) at++
    const texts = [message.content, isAnswered ? answer.content : ''].filter((text) => text !== '')
    merged.push({
      ...message,
      content: texts.join('\n\n'),
      ...(responses.length > 0 && { tool_responses: responses }),
    })
  }
  return merged
}

function parseOrKeep(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function withTypedReasoning(message: TemplateMessage): AdaptedMessage {
  const { role, content, reasoning_content: reasoning, ...others } = message
  if (role !== 'assistant' || reasoning === undefined) return message
  const parts = [
    { type: 'thinking', thinking: reasoning },
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
  ]
  return { role, content: parts, ...others }
}

const withTrimmedText = (message: TemplateMessage): TemplateMessage => ({
  ...message,
  content: message.content.trim(),
  ...(message.reasoning_content !== undefined && { reasoning_content: message.reasoning_content.trim() }),
})
