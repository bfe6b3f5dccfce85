/** Functions for the input of a request, shared by engines, dialects and metering. */
import type { CacheLifetime, GenerateRequest, ImagePart, Message, Part, Tool } from './request.ts'

/**
 * Tokens of an image in an estimate: the most that Anthropic's models take for an image, which is made smaller before
 * (1,568 × 1,568 pixels at most, one token for 750 of them, and about 1,600 in all).
 */
const estimatedImageTokens = 1_600
/**
 * Most tokens of an image: those of gpt-4o-mini, which counts 2,833 and 5,667 for each of at most eight tiles. Qwen2-VL takes up
 * to 16,384.
 */
const maxImageTokens = 48_169

/** Length of all text in characters; a token id counts as one. */
export const measureTextLength = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, ({ length }) => length)

/** Length of all text in bytes; a token id counts as four. */
export const measureTextBytes = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, (text) => (typeof text === 'string' ? Buffer.byteLength(text) : 4 * text.length))

/**
 * Estimates the tokens of a prompt: 4 bytes per token, 4 tokens for the template's markup of each message, and 1,600 tokens per
 * image.
 */
export const estimatePromptTokens = (request: Pick<GenerateRequest, 'input'>): number =>
  Math.ceil(measureTextBytes(request) / 4) +
  4 * toTemplateMessages(request.input).length +
  estimatedImageTokens * imagesOf(request.input).length

/** Upper bound of the tokens of all images. */
export const boundImageTokens = (input: GenerateRequest['input']): number =>
  maxImageTokens * imagesOf(input).length

/** Returns the images of the messages, of results in them, and of a text prompt. */
export function imagesOf(input: GenerateRequest['input']): readonly ImagePart[] {
  if (input.kind === 'infill') return []
  const inMessages = (input.messages ?? []).flatMap(({ content }) => imagesIn(content))
  return input.kind === 'text' ? [...inMessages, ...(input.images ?? [])] : inMessages
}

const imagesIn = (parts: readonly Part[]): readonly ImagePart[] =>
  parts.flatMap((part) => {
    if (part.type === 'image') return part
    return part.type === 'tool-result' ? imagesIn(part.content) : []
  })

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
    if (part.type === 'image') return sum
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
    { role: 'user', content: [{ type: 'text', text }, ...(input.images ?? [])] },
  ]
}

const toTextMessage = (role: Message['role'], text: string): Message => ({
  role,
  content: [{ type: 'text', text }],
})
