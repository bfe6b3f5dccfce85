/** Translates messages of the engine contract to those of OpenAI's chats. */
import type { ImagePart, Message, Part } from '../../request.ts'

export function toOpenAiMessages(messages: readonly Message[]): readonly object[] {
  const ids = new CallIds()
  return messages.flatMap((message) => toMessages(message, ids))
}

/** Results of tools come first, since they answer the message before. */
function toMessages({ role, content }: Message, ids: CallIds): readonly object[] {
  const results = content.filter((part) => part.type === 'tool-result')
  const others = content.filter((part) => part.type !== 'tool-result')
  const images = results.flatMap((part) => part.content.filter((inner) => inner.type === 'image'))
  return [
    ...results.map((part) => ({
      role: 'tool',
      tool_call_id: ids.idOf(part),
      // The API has no field for a failure. Templates write the same word.
      content: part.isError ? `Error: ${textOf(part.content)}` : textOf(part.content),
    })),
    // A message of a tool has only text.
    ...(images.length > 0 ? [{ role: 'user', content: images.map(toImage) }] : []),
    ...(others.length > 0 || results.length === 0 ? [toMessage(role, others, ids)] : []),
  ]
}

function toMessage(role: string, parts: readonly Part[], ids: CallIds): object {
  const reasoning = parts.flatMap((part) => (part.type === 'reasoning' ? part.text : []))
  const calls = parts.filter((part) => part.type === 'tool-call')
  ids.add(calls)
  const content = toContent(parts)
  return {
    role,
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('') }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: json }) => ({
        ...{ id, type: 'function' },
        function: { name, arguments: json },
      })),
    }),
  }
}

/** One text is a string, because some servers take no list. */
function toContent(parts: readonly Part[]): string | readonly object[] {
  const visible = parts.flatMap((part) => {
    if (part.type === 'image') return toImage(part)
    return part.type === 'text' ? { type: 'text', text: part.text } : []
  })
  const [first] = visible
  if (!first) return ''
  return visible.length === 1 && 'text' in first ? first.text : visible
}

const toImage = ({ mediaType, data }: ImagePart) => ({
  type: 'image_url',
  image_url: { url: `data:${mediaType};base64,${data}` },
})

const textOf = (parts: readonly Part[]): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

type ToolCallPart = Extract<Part, { type: 'tool-call' }>
type ToolResultPart = Extract<Part, { type: 'tool-result' }>

/** Finds the ids of results that have none: by the name of the tool, else by their position. */
class CallIds {
  #open: ToolCallPart[] = []

  add(calls: readonly ToolCallPart[]): void {
    if (calls.length > 0) this.#open = [...calls]
  }

  idOf({ id, name }: ToolResultPart): string {
    const index = this.#open.findIndex((call) =>
      id === undefined ? name === undefined || call.name === name : call.id === id,
    )
    const [call] = index < 0 ? [] : this.#open.splice(index, 1)
    return id ?? call?.id ?? 'call'
  }
}
