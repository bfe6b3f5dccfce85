/** Converts messages for templates. Tool calls and results get OpenAI's shape or a plain-text description. */
import type { Message, Part, Tool } from '../engine/request.ts'
import type { TemplateCall, TemplateMessage } from './template-message.ts'
import { detectFamily, type ToolCallFamily } from './tool-calls/detect.ts'
import { printPythonCalls } from './tool-calls/python-calls.ts'

export interface Conversation {
  readonly messages: readonly TemplateMessage[]
  readonly tools?: readonly object[]
}

export interface ConversationOptions {
  readonly tools: readonly Tool[]
  /** Source of the template. */
  readonly source: string
  /** Applied to text from users and tools. Only the host app and the model may write special tokens. */
  readonly neutralize: (text: string) => string
  /** Whether the template accepts a system message. */
  readonly supportsSystemRole: boolean
}

/**
 * Converts messages for a Jinja template. If the tool-call family of the template is `generic`, describes
 * tools, calls and results in plain text. That text asks the model to write each call as JSON on a separate
 * line.
 */
export function toConversation(
  messages: readonly Message[],
  { tools, source, neutralize, supportsSystemRole }: ConversationOptions,
): Conversation {
  const family = detectFamily(source)
  const hasStringArguments = family !== 'generic' && requiresStringArguments(source)
  const converted = convertMessages(messages, { hasStringArguments, neutralize })
  if (family === 'generic') return { messages: describeInText(converted, tools, supportsSystemRole) }
  const adapted =
    family === 'harmony'
      ? converted.map(withoutPreamble)
      : source.includes('tool_calls')
        ? converted
        : converted.map((message) => withCallsInText(message, family))
  const isOneCallPerMessage = family === 'harmony' || /single tool-calls? at once/.test(source)
  return {
    messages: withShortIds(isOneCallPerMessage ? splitParallelCalls(adapted) : adapted, source),
    ...(tools.length > 0 && { tools: tools.map(toTemplateTool) }),
  }
}

/**
 * Converts messages for a Go template. Describes the tools in plain text if the template does not list them.
 */
export function toPlainConversation(
  messages: readonly Message[],
  {
    tools,
    supportsTools,
    neutralize,
  }: Pick<ConversationOptions, 'tools' | 'neutralize'> & { readonly supportsTools: boolean },
): readonly TemplateMessage[] {
  const converted = convertMessages(messages, { hasStringArguments: false, neutralize })
  return supportsTools ? converted : describeInText(converted, tools, true)
}

type CallPart = Extract<Part, { type: 'tool-call' }>
type ResultPart = Extract<Part, { type: 'tool-result' }>
const isCall = (part: Part): part is CallPart => part.type === 'tool-call'
const isResult = (part: Part): part is ResultPart => part.type === 'tool-result'

interface MessageContext {
  /** Tool name of each earlier tool call, by the id of the tool call. A later turn can reuse an id. */
  readonly names: Map<string, string>
  readonly hasStringArguments: boolean
  readonly neutralize: ConversationOptions['neutralize']
}

function convertMessages(
  messages: readonly Message[],
  options: Omit<MessageContext, 'names'>,
): readonly TemplateMessage[] {
  const context = { ...options, names: new Map<string, string>() }
  return messages.flatMap((message) => toTemplateMessages(message, context))
}

/** Puts tool results before the text of the message, because they answer the previous message. */
function toTemplateMessages({ role, content }: Message, context: MessageContext): readonly TemplateMessage[] {
  const { names, hasStringArguments } = context
  const neutralize = role === 'system' || role === 'assistant' ? (text: string) => text : context.neutralize
  const results = content.filter(isResult).map((part) => toResult(part, context))
  const calls = content.filter(isCall)
  for (const { id, name } of calls) names.set(id, name)
  const text = neutralize(joinText(content, 'text'))
  const reasoning = neutralize(joinText(content, 'reasoning'))
  if (results.length > 0 && text === '') return results
  return [
    ...results,
    {
      role,
      content: text,
      ...(reasoning !== '' && { reasoning_content: reasoning, thinking: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => toTemplateCall(call, hasStringArguments)) }),
    },
  ]
}

function toResult(
  { id, name: ownName, content, isError }: ResultPart,
  { names, neutralize }: MessageContext,
): TemplateMessage {
  const name = ownName === undefined ? names.get(id ?? '') : neutralize(ownName)
  const text = neutralize(joinText(content, 'text'))
  return {
    role: 'tool',
    content: isError ? `Error: ${text}` : text,
    ...(id !== undefined && { tool_call_id: id }),
    ...(name !== undefined && { name }),
  }
}

const joinText = (content: readonly Part[], type: 'text' | 'reasoning'): string =>
  content.map((part) => (part.type === type ? part.text : '')).join('')

const toTemplateCall = (
  { id, name, arguments: json }: CallPart,
  hasStringArguments: boolean,
): TemplateCall => ({
  id,
  type: 'function',
  function: { name, arguments: hasStringArguments ? json : (parseObject(json) ?? json) },
})

const toTemplateTool = ({ name, description = '', parameters }: Tool): object => ({
  type: 'function',
  function: { name, description, parameters },
})

/** Whether the template concatenates tool-call arguments as a string. Most templates expect an object. */
const requiresStringArguments = (source: string): boolean =>
  /\barguments\b/.test(source) && !/\barguments\b['"\])]*\s*(?:\||\.[a-z]|is |or |-?%|\)|,)/.test(source)

function parseObject(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Joins reasoning and text before a tool call as reasoning, because gpt-oss accepts only one of them. */
function withoutPreamble(message: TemplateMessage): TemplateMessage {
  const { content, thinking, tool_calls } = message
  return tool_calls && thinking !== undefined && content !== ''
    ? { ...message, content: '', thinking: `${thinking}\n${content}` }
    : message
}

/**
 * Appends tool calls to the text of the message. The templates of Granite 3 and LFM2 have no field for tool calls,
 * and the models were trained on tool calls as text.
 */
function withCallsInText(
  { tool_calls, ...message }: TemplateMessage,
  family: ToolCallFamily,
): TemplateMessage {
  if (!tool_calls) return message
  const calls = tool_calls.map(({ function: call }) => call)
  const text = family === 'lfm2' ? printPythonCalls(calls) : `<|tool_call|>${JSON.stringify(calls)}`
  return { ...message, content: `${message.content}${text}` }
}

/**
 * Splits parallel tool calls for templates that accept one tool call per message. Each tool call is followed
 * by its result. No result is dropped.
 */
function splitParallelCalls(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const split: TemplateMessage[] = []
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as TemplateMessage
    const { role, tool_calls: calls = [] } = message
    if (calls.length < 2) {
      split.push(message)
      continue
    }
    const results: TemplateMessage[] = []
    while (messages[at + 1]?.role === 'tool') results.push(messages[++at] as TemplateMessage)
    const ids = new Set(calls.map(({ id }) => id))
    const take = (matchesId: (id: string | undefined) => boolean): readonly TemplateMessage[] => {
      const at = results.findIndex(({ tool_call_id: id }) => matchesId(id))
      return at === -1 ? [] : results.splice(at, 1)
    }
    for (const [index, call] of calls.entries()) {
      const ownResults = take((id) => id === call.id)
      split.push({ ...(index === 0 ? message : { role, content: '' }), tool_calls: [call] })
      // Results without a matching call are assigned by position.
      split.push(...(ownResults.length > 0 ? ownResults : take((id) => id === undefined || !ids.has(id))))
    }
    split.push(...results)
  }
  return split
}

/** Gives tool calls ids of nine characters, because Mistral's templates reject other lengths. */
function withShortIds(messages: readonly TemplateMessage[], source: string): readonly TemplateMessage[] {
  if (!/length\s*[!=]=\s*9\b/.test(source)) return messages
  const shortIds = new Map<string, string>()
  const shorten = (id: string): string => {
    if (id.length === 9) return id
    if (!shortIds.has(id)) shortIds.set(id, `${shortIds.size + 1}`.padStart(9, '0'))
    return shortIds.get(id) as string
  }
  return messages.map(({ tool_calls, tool_call_id, ...message }) => ({
    ...message,
    ...(tool_calls && { tool_calls: tool_calls.map((call) => ({ ...call, id: shorten(call.id) })) }),
    ...(message.role === 'tool' && { tool_call_id: shorten(tool_call_id ?? '') }),
  }))
}

function describeInText(
  messages: readonly TemplateMessage[],
  tools: readonly Tool[],
  supportsSystemRole: boolean,
): readonly TemplateMessage[] {
  const converted: TemplateMessage[] = []
  /** Whether the last converted message contains tool results. */
  let isAfterResult = false
  for (const { tool_calls, tool_call_id: _, name, ...message } of messages) {
    const { role, content } = message
    const isResult = role === 'tool' && (name !== undefined || tools.length > 0)
    const text = isResult ? `The result of ${name ?? 'the tool'}:\n${content}` : content
    const last = converted.at(-1)
    // Many templates without tools require alternating user and assistant messages.
    if (last && isAfterResult && (isResult || role === 'user'))
      converted.splice(-1, 1, { ...last, content: `${last.content}\n\n${text}` })
    else if (isResult) converted.push({ role: 'user', content: text })
    else {
      const calls = tool_calls?.map(({ function: call }) => JSON.stringify(call)) ?? []
      converted.push({ ...message, content: [...(content === '' ? [] : [content]), ...calls].join('\n') })
    }
    isAfterResult = isResult
  }
  return tools.length > 0 ? withToolDescription(converted, tools, supportsSystemRole) : converted
}

/**
 * Appends the tool description to the system message. If the template accepts no system message, appends it
 * to the first message.
 */
function withToolDescription(
  messages: readonly TemplateMessage[],
  tools: readonly Tool[],
  supportsSystemRole: boolean,
): readonly TemplateMessage[] {
  const [first, ...others] = messages
  const description = describeTools(tools)
  if (first && (first.role === 'system' || !supportsSystemRole))
    return [{ ...first, content: `${first.content}\n\n${description}`.trimStart() }, ...others]
  return [{ role: 'system', content: description }, ...messages]
}

const describeTools = (tools: readonly Tool[]): string =>
  `You can call tools. To call one, write a JSON object on a line of its own, with nothing else on the line:
{"name": "the name of the tool", "arguments": {}}
To call several, write a line for each. Then stop: the results come with the next message. Where no tool helps, answer in words.

The tools, each with the JSON Schema of its arguments:
${tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters })).join('\n')}`
