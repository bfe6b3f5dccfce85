/** Replaces images for models that see none. */
import type { Message, Part } from '../../engine/request.ts'
import { imagesOf } from '../../engine/request-input.ts'
import { invalidRequest } from '../../errors.ts'
import { type FoundImage, mapImages, type PromptInput } from './map-images.ts'

/** Agents send what their tools return, such as screenshots, to every model. */
const placeholder = '[An image, which this model cannot see.]'

/** Replaces images by their texts. Throws an `LlmError` `invalid_request` for an image that no text may replace. */
export function replaceImages(input: PromptInput): PromptInput {
  if (imagesOf(input).length === 0) return input
  const replaced = mapImages(input, replaceImage)
  return replaced.kind === 'infill' || !replaced.messages
    ? replaced
    : { ...replaced, messages: replaced.messages.map(joinTexts) }
}

function replaceImage({ image, param, isInResult }: FoundImage): Part {
  const text = image.replacement ?? (isInResult ? placeholder : undefined)
  if (text === undefined)
    throw invalidRequest('An image is not supported by this model.', { param, issue: 'unsupported' })
  return { type: 'text', text, ...(image.cache && { cache: image.cache }) }
}

/** Joins adjacent texts up to a cache breakpoint, as if the caller had sent one text. */
function joinTexts<Holder extends { readonly content: Message['content'] }>(holder: Holder): Holder {
  const joined: Part[] = []
  for (const part of holder.content) {
    const last = joined.at(-1)
    if (part.type === 'text' && last?.type === 'text' && !last.cache)
      joined[joined.length - 1] = { ...part, text: last.text + part.text }
    else joined.push(part.type === 'tool-result' ? joinTexts(part) : part)
  }
  return { ...holder, content: joined }
}
