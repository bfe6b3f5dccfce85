/** Replaces the images of an input. */
import type { GenerateRequest, ImagePart, Message, Part } from '../../engine/request.ts'
import { imagesOf } from '../../engine/request-input.ts'

/** An image, and where it is in the request. */
export interface FoundImage {
  readonly image: Extract<Part, { readonly type: 'image' }>
  /** Path of the image, which errors name. */
  readonly param: string
  readonly isInResult: boolean
}

export type PromptInput = GenerateRequest['input']

type MapPart = (found: FoundImage) => Part

/** Returns the same input if it has no images. Throws what `map` throws. */
export function mapImages(input: PromptInput, map: MapPart): PromptInput {
  if (input.kind === 'infill' || imagesOf(input).length === 0) return input
  const messages = input.messages?.map(
    (message, at): Message => ({
      ...message,
      content: mapParts(message.content, `input.messages[${at}].content`, false, map),
    }),
  )
  if (input.kind === 'chat') return { ...input, messages: messages ?? [] }
  const images = mapParts(input.images ?? [], 'input.images', false, map).filter(
    ({ type }) => type === 'image',
  )
  return {
    ...input,
    ...(messages && { messages }),
    ...(input.images && { images: images as readonly ImagePart[] }),
  }
}

function mapParts(parts: readonly Part[], path: string, isInResult: boolean, map: MapPart): readonly Part[] {
  return parts.map((part, at) => {
    if (part.type === 'tool-result')
      return { ...part, content: mapParts(part.content, `${path}[${at}].content`, true, map) }
    if (part.type !== 'image') return part
    return map({ image: part, param: part.param ?? `${path}[${at}]`, isInResult })
  })
}
