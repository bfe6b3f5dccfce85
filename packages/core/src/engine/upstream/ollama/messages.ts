/** Translates messages for the Ollama API. Shape: Ollama API reference, "Generate a chat message". */
import type { Message, Part } from '../../request.ts'
import { parseArguments } from '../lacked-fields.ts'

type OllamaResultPart = Extract<Part, { type: 'tool-result' }>

/** A message for each result of a tool comes before the rest of its message. */
export function toMessages(messages: readonly Message[]): readonly object[] {
  const names = new Map<string, string>()
  return messages.flatMap((message, at) => {
    for (const part of message.content) if (part.type === 'tool-call') names.set(part.id, part.name)
    const results = message.content.filter((part) => part.type === 'tool-result')
    const rest = toMessage(message, at)
    return [
      ...results.map((result) => toResult(result, names)),
      ...(results.length > 0 && rest.content === '' ? [] : [rest]),
    ]
  })
}

function toMessage({ role, content }: Message, at: number) {
  const thinking = joinText(content, 'reasoning')
  const calls = content.filter((part) => part.type === 'tool-call')
  return {
    ...{ role, content: joinText(content, 'text') },
    ...(thinking !== '' && { thinking }),
    ...toImages(content),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: json }) => ({
        ...{ id, function: { name, arguments: parseArguments(json, `messages[${at}]`) } },
      })),
    }),
  }
}

/** The API has no field for errors. Models know them by the first word, as in local chat templates. */
function toResult(
  { id, name, content, isError }: OllamaResultPart,
  names: ReadonlyMap<string, string>,
): object {
  const text = joinText(content, 'text')
  return {
    ...{ role: 'tool', content: isError ? `Error: ${text}` : text },
    tool_name: name ?? names.get(id ?? ''),
    tool_call_id: id,
    ...toImages(content),
  }
}

const joinText = (content: readonly Part[], type: 'text' | 'reasoning'): string =>
  content.map((part) => (part.type === type ? part.text : '')).join('')

function toImages(content: readonly Part[]): object {
  const images = content.flatMap((part) => (part.type === 'image' ? [part.data] : []))
  return images.length > 0 ? { images } : {}
}
