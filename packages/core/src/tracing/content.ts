/** Prompts and answers as attributes, in the JSON of the semantic conventions for generative AI. */
import type { Attributes } from '@opentelemetry/api'
import type { AnswerContent, CallContent } from '../diagnostics/events.ts'
import type { GenerateRequest, Message, Part, Tool } from '../engine/request.ts'
import { tryParseJson } from '../util/try-parse-json.ts'

interface ContentMessage {
  readonly role: string
  readonly parts: readonly object[]
}

/** All answers of a call share a prompt, or have prompts of their own, which are joined. */
export function describeContent({ inputs, answers }: CallContent): Attributes {
  const prompts = [...new Set(inputs)]
  const tools = prompts.flatMap((input) => (input.kind === 'chat' ? (input.tools ?? []) : []))
  return {
    'gen_ai.input.messages': JSON.stringify(prompts.flatMap(toMessages)),
    ...(answers.length > 0 && { 'gen_ai.output.messages': JSON.stringify(answers.map(toAnswer)) }),
    ...(tools.length > 0 && { 'gen_ai.tool.definitions': JSON.stringify(tools.map(toDefinition)) }),
  }
}

function toMessages(input: GenerateRequest['input']): readonly ContentMessage[] {
  if (input.kind === 'chat') return input.messages.map(toMessage)
  if (input.kind === 'infill') return [userMessage([input.prefix, input.suffix])]
  return [
    ...(input.system === undefined ? [] : [{ role: 'system', parts: [textPart(input.system)] }]),
    ...(input.messages ?? []).map(toMessage),
    // A prompt may contain token ids.
    userMessage(input.prompt.map((piece) => (typeof piece === 'string' ? piece : JSON.stringify(piece)))),
  ]
}

const toMessage = ({ role, content }: Message): ContentMessage => ({ role, parts: content.map(toPart) })

const userMessage = (texts: readonly string[]): ContentMessage => ({
  role: 'user',
  parts: texts.map(textPart),
})

const textPart = (content: string): object => ({ type: 'text', content })

function toPart(part: Part): object {
  if (part.type === 'tool-call') return toolCallPart(part)
  // A trace with images would be megabytes long.
  if (part.type === 'image') return { type: 'blob', mime_type: part.mediaType, modality: 'image' }
  if (part.type !== 'tool-result') return { type: part.type, content: part.text }
  return {
    type: 'tool_call_response',
    ...(part.id !== undefined && { id: part.id }),
    response: part.content.map((inner) => ('text' in inner ? inner.text : '')).join(''),
  }
}

const toolCallPart = (call: { readonly id: string; readonly name: string; readonly arguments: string }) => ({
  type: 'tool_call',
  id: call.id,
  name: call.name,
  arguments: tryParseJson(call.arguments) ?? call.arguments,
})

const toAnswer = ({ text, reasoning, toolCalls }: AnswerContent): ContentMessage => ({
  role: 'assistant',
  parts: [
    ...(reasoning === '' ? [] : [{ type: 'reasoning', content: reasoning }]),
    ...(text === '' ? [] : [textPart(text)]),
    ...toolCalls.map(toolCallPart),
  ],
})

const toDefinition = ({ name, description, parameters }: Tool): object => ({
  type: 'function',
  ...{ name, ...(description !== undefined && { description }), parameters },
})
