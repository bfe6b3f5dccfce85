/** Translates messages to turns of the Anthropic API. Shape: Anthropic API reference, "Create a Message". */
import type { CacheLifetime, Message, Part } from '../../request.ts'
import { parseArguments } from '../lacked-fields.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'

export interface AnthropicTurns {
  /** System messages before all others. */
  readonly system: readonly object[]
  readonly messages: readonly object[]
}

/**
 * Leaves out empty texts, which the API rejects, and earlier reasoning, since the API takes back only reasoning that it has
 * signed. The server joins consecutive messages of one role.
 */
export function toTurns(messages: readonly Message[]): AnthropicTurns {
  const first = messages.findIndex(({ role }) => role !== 'system')
  const count = first === -1 ? messages.length : first
  return {
    system: messages.slice(0, count).flatMap((message, at) => toBlocks(message, at)),
    messages: mergeResults(messages.slice(count), count).flatMap(({ role, content }) => {
      // A user may say nothing.
      if (content.length === 0 && role !== 'user') return []
      return { role, content: content.length === 0 ? '' : content }
    }),
  }
}

interface AnthropicTurn {
  readonly role: string
  readonly content: object[]
}

/** All results of one turn's tool calls belong into one message. */
function mergeResults(messages: readonly Message[], offset: number): readonly AnthropicTurn[] {
  const turns: AnthropicTurn[] = []
  for (const [index, message] of messages.entries()) {
    const isResult = message.role === 'tool'
    const content = toBlocks(message, offset + index)
    if (isResult && messages[index - 1]?.role === 'tool') turns.at(-1)?.content.push(...content)
    else turns.push({ role: isResult ? 'user' : message.role, content })
  }
  return turns
}

const roles: readonly string[] = ['system', 'user', 'assistant', 'tool']

function toBlocks({ role, content }: Message, at: number): object[] {
  if (!roles.includes(role)) throw unsupportedByUpstream('this role', `messages[${at}].role`)
  return content.flatMap((part) => toBlock(part, at))
}

function toBlock(part: Part, at: number): readonly object[] {
  const cache = toCacheControl(part.cache)
  switch (part.type) {
    case 'reasoning':
      return []
    case 'text':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, ...cache }]
    case 'image': {
      const source = { type: 'base64', media_type: part.mediaType, data: part.data }
      return [{ type: 'image', source, ...cache }]
    }
    case 'tool-call': {
      const { id, name, arguments: json } = part
      return [
        {
          type: 'tool_use',
          id: toToolUseId(id),
          name,
          input: parseArguments(json, `messages[${at}]`),
          ...cache,
        },
      ]
    }
    case 'tool-result': {
      if (part.id === undefined)
        throw unsupportedByUpstream('the result of a tool without the id of its call', `messages[${at}]`)
      return [
        {
          ...{ type: 'tool_result', tool_use_id: toToolUseId(part.id) },
          content: part.content.flatMap((inner) => toBlock(inner, at)),
          ...(part.isError && { is_error: true }),
          ...cache,
        },
      ]
    }
  }
}

export const toCacheControl = (cache: CacheLifetime | undefined): object =>
  cache === undefined ? {} : { cache_control: { type: 'ephemeral', ...(cache === '1h' && { ttl: cache }) } }

/** The API accepts no other characters. */
const toToolUseId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_')
