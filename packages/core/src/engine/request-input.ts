/** Functions for the input of a request, shared by engines, dialects and metering. */
import type { CacheLifetime, GenerateRequest, Message, Part, Tool } from './request.ts'

/** Length of all input in characters; a token id counts as one. */
export const measureTextLength = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, ({ length }) => length)

/** Length of all input in bytes; a token id counts as four. */
export const measureTextBytes = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, (text) => (typeof text === 'string' ? Buffer.byteLength(text) : 4 * text.length))

/** Estimates the tokens of a prompt: 4 bytes per token, and 4 tokens for the template's markup of each message. */
export const estimatePromptTokens = (request: Pick<GenerateRequest, 'input'>): number =>
  Math.ceil(measureTextBytes(request) / 4) + 4 * toTemplateMessages(request.input).length

type Measure = (text: string | readonly number[]) => number

function measureInput({ input }: Pick<GenerateRequest, 'input'>, measure: Measure): number {
  if (input.kind === 'infill') return measure(input.prefix) + measure(input.suffix)
  const { messages = [] } = input
  const messagesSize = messages.reduce((sum, { content }) => sum + measureParts(content, measure), 0)
  if (input.kind === 'text')
    return input.prompt.reduce(
      (sum, piece) => sum + measure(piece),
      messagesSize + measure(input.system ?? ''),
    )
  return messagesSize + (input.tools?.length ? measure(JSON.stringify(input.tools)) : 0)
}

const measureParts = (content: readonly Part[], measure: Measure): number =>
  content.reduce((sum, part) => {
    if (part.type === 'tool-call') return sum + measure(part.name) + measure(part.arguments)
    if (part.type === 'image') return sum + measure(part.data)
    return sum + (part.type === 'tool-result' ? measureParts(part.content, measure) : measure(part.text))
  }, 0)

/** Returns the lifetimes of all breakpoints, in the order of the prompt. */
export function lifetimesOf(input: GenerateRequest['input']): readonly CacheLifetime[] {
  if (input.kind !== 'chat') return []
  return [...(input.tools ?? []), ...input.messages.flatMap(({ content }) => content)].flatMap(
    ({ cache }) => cache ?? [],
  )
}

/** Whether the input bypasses the chat template. */
export const isRaw = (input: GenerateRequest['input']): boolean =>
  input.kind === 'infill' || (input.kind === 'text' && input.template === false)

/** Whether the model can continue the last message: one of the assistant, without tool calls. */
export function isContinuable(messages: readonly Message[]): boolean {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.content.every(({ type }) => type !== 'tool-call')
}

/** Returns the tools that `toolChoice` allows. */
export function callableTools(input: GenerateRequest['input']): readonly Tool[] {
  if (input.kind !== 'chat') return []
  const { tools = [], toolChoice: { mode = 'auto', names } = {} } = input
  return mode === 'none' ? [] : tools.filter(({ name }) => names?.includes(name) ?? true)
}

/**
 * Returns the messages for the chat template. The text of a prompt becomes the last user message. An infill
 * input becomes the only message.
 */
export function toTemplateMessages(input: GenerateRequest['input']): readonly Message[] {
  if (input.kind === 'chat') return input.messages
  if (input.kind === 'infill') return [toTextMessage('user', input.prefix + input.suffix)]
  const text = input.prompt.filter((piece) => typeof piece === 'string').join('')
  return [
    ...(input.system ? [toTextMessage('system', input.system)] : []),
    ...(input.messages ?? []),
    toTextMessage('user', text),
  ]
}

const toTextMessage = (role: Message['role'], text: string): Message => ({
  role,
  content: [{ type: 'text', text }],
})
