/** What the scripted models read of a request. */
import {
  type GenerateRequest,
  type Message,
  type Part,
  type Tool,
  toTemplateMessages,
} from '@modelmount/core/engine'

export interface Conversation {
  /** Number of user messages. */
  readonly turns: number
  /** The text of the last user message. */
  readonly text: string
  /** The results of tools since the last answer. */
  readonly results: readonly string[]
  /** The tools that the model may call. */
  readonly tools: readonly Tool[]
  /** Whether the model has to call one. */
  readonly isForced: boolean
}

export function readConversation({ input }: GenerateRequest): Conversation {
  const messages = toTemplateMessages(input)
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  const users = messages.filter(({ role }) => role === 'user')
  const { tools = [], toolChoice: { mode = 'auto', names } = {} } = input.kind === 'chat' ? input : {}
  return {
    turns: users.length,
    text: textOf(users.at(-1)?.content ?? []),
    results: messages.slice(lastAnswer + 1).flatMap(resultsOf),
    tools: mode === 'none' ? [] : tools.filter(({ name }) => names?.includes(name) ?? true),
    isForced: mode === 'required',
  }
}

const resultsOf = ({ content }: Message): readonly string[] =>
  content.flatMap((part) => (part.type === 'tool-result' ? [textOf(part.content)] : []))

const textOf = (content: readonly Part[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')
