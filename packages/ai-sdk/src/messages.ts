/** Translates the prompt of the SDK to messages. */
import {
  type LanguageModelV3Message,
  type LanguageModelV3Prompt,
  type LanguageModelV3ToolResultPart,
  UnsupportedFunctionalityError,
} from '@ai-sdk/provider'
import type { Message, Part } from '@modelmount/core/engine'
import { readCache } from './provider-options.ts'

/** Throws an `UnsupportedFunctionalityError` for files. */
export const toMessages = (prompt: LanguageModelV3Prompt): readonly Message[] => prompt.flatMap(toTurns)

function toTurns(message: LanguageModelV3Message): readonly Message[] {
  const { role, providerOptions } = message
  const parts =
    message.role === 'system'
      ? [{ type: 'text', text: message.content } as const]
      : message.content.flatMap((part) => toPart(part))
  return splitResults(role, withCache(parts, readCache(providerOptions)))
}

type SdkPart = Exclude<LanguageModelV3Message['content'], string>[number]
type ResultOutput = LanguageModelV3ToolResultPart['output']

function toPart(part: SdkPart): readonly Part[] {
  // It decides on a tool that a provider executes, and this provider executes none.
  if (part.type === 'tool-approval-response') return []
  const cache = readCache(part.providerOptions)
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return [{ type: part.type, text: part.text, ...cache }]
    case 'tool-call': {
      const { toolCallId: id, toolName: name, input } = part
      return [{ type: 'tool-call', id, name, arguments: JSON.stringify(input ?? {}), ...cache }]
    }
    case 'tool-result': {
      const { toolCallId: id, toolName: name, output } = part
      return [{ type: 'tool-result', id, name, ...toResult(output), ...cache }]
    }
    case 'file':
      throw unsupported(`Files in messages (${part.mediaType})`)
    default:
      // Newer versions of the SDK have further parts.
      throw unsupported(`Parts of the type '${(part as { readonly type: string }).type}'`)
  }
}

type TextPart = Extract<Part, { text: string }>
const text = (text: string): readonly TextPart[] => [{ type: 'text', text }]

function toResult(output: ResultOutput): { content: readonly TextPart[]; isError?: true } {
  switch (output.type) {
    case 'text':
      return { content: text(output.value) }
    case 'json':
      return { content: text(JSON.stringify(output.value)) }
    case 'error-text':
      return { content: text(output.value), isError: true }
    case 'error-json':
      return { content: text(JSON.stringify(output.value)), isError: true }
    case 'execution-denied':
      return { content: text(output.reason ?? 'The execution of the tool was denied.'), isError: true }
    case 'content':
      return {
        content: output.value.flatMap((part) => {
          if (part.type !== 'text') throw unsupported(`Tool results of the type '${part.type}'`)
          return text(part.text)
        }),
      }
  }
}

/** Sets the breakpoint of a message at its last part, unless that has one. */
function withCache(parts: readonly Part[], cache: ReturnType<typeof readCache>): readonly Part[] {
  const last = parts.at(-1)
  return last ? [...parts.slice(0, -1), { ...cache, ...last }] : parts
}

/**
 * Moves the tool results of a message into separate turns. The SDK puts results of tools that another provider
 * has executed into the message of the assistant.
 */
function splitResults(role: Message['role'], parts: readonly Part[]): readonly Message[] {
  const turns: { role: Message['role']; content: Part[] }[] = []
  for (const part of parts) {
    const roleOfPart = part.type === 'tool-result' ? 'tool' : role
    const turn = turns.at(-1)
    if (turn?.role === roleOfPart) turn.content.push(part)
    else turns.push({ role: roleOfPart, content: [part] })
  }
  return turns
}

const unsupported = (functionality: string): UnsupportedFunctionalityError =>
  new UnsupportedFunctionalityError({
    functionality,
    message: `${functionality} are not supported: models of Modelmount read text only.`,
  })
