/** Local models see no images. */
import { invalidRequest } from '../../errors.ts'
import type { GenerateRequest, Message, Part } from '../request.ts'

/** Agents send what their tools return, such as screenshots, to every model. */
const placeholder = '[An image, which this model cannot see.]'

/**
 * Replaces images in results of tools by a text. Throws an `LlmError` `invalid_request` for another image. Returns the same
 * object if the request has no image.
 */
export function replaceImages(request: GenerateRequest): GenerateRequest {
  const { input } = request
  if (input.kind === 'infill' || !input.messages?.some(hasImage)) return request
  return { ...request, input: { ...input, messages: input.messages.map(replaceInMessage) } }
}

const hasImage = ({ content }: Pick<Message, 'content'>): boolean =>
  content.some((part) => part.type === 'image' || (part.type === 'tool-result' && hasImage(part)))

const replaceInMessage = (message: Message): Message => ({
  ...message,
  content: message.content.map((part) => {
    if (part.type === 'image')
      throw invalidRequest('An image is not supported by this model.', {
        ...{ param: part.param, issue: 'unsupported' },
      })
    return part.type === 'tool-result' ? { ...part, content: part.content.map(replaceInResult) } : part
  }),
})

const replaceInResult = (part: Part): Part =>
  part.type === 'image' ? { type: 'text', text: placeholder, ...(part.cache && { cache: part.cache }) } : part
