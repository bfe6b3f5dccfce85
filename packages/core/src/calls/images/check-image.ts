/** Checks images in Base64. */
import { isBase64 } from '../../engine/is-base64.ts'
import type { ImagePart } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { LlmError } from '../../errors.ts'
import type { FoundImage } from './map-images.ts'

const mediaTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
type MediaType = (typeof mediaTypes)[number]

/** The first bytes of each format, in hexadecimal digits. */
const signatures: Readonly<Record<MediaType, RegExp>> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/gif': /^474946383[79]61/,
  'image/webp': /^52494646.{8}57454250/,
}
/** Longest signature in Base64. */
const signatureLength = 16

/**
 * Checks size, encoding and format of an image whose bytes are known. Returns it with its media type. Throws an `LlmError`
 * `invalid_request`, which never repeats the data.
 */
export function checkImage({ image, param }: FoundImage): ImagePart {
  const { url, replacement: _, ...part } = image
  const { mediaType, data } = url ? readDataUrl(url, param) : part
  if (data === '')
    throw invalidImage('expected the image as a data: URL in Base64, or in Base64, got none', param)
  const bytes = sizeOf(data)
  if (bytes > limits.imageBytes)
    throw invalidImage(`expected an image of at most ${limits.imageBytes} bytes, got ${bytes}`, param)
  if (!isBase64(data)) throw invalidImage('expected the bytes of the image in Base64', param)
  const found = detectMediaType(Buffer.from(data.slice(0, signatureLength), 'base64'))
  if (!found) throw invalidImage(`expected an image in one of the formats ${mediaTypes.join(', ')}`, param)
  const declared = normalizeMediaType(mediaType)
  if (declared !== '' && declared !== found)
    throw invalidImage(`the media type does not match the image, which is ${found}`, param)
  return { ...part, mediaType: found, data, param }
}

/** Number of bytes of a text in Base64. */
export const sizeOf = (data: string): number =>
  Math.floor((data.length * 3) / 4) - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)

/** Finds the media type in the first bytes. */
function detectMediaType(bytes: Buffer): MediaType | undefined {
  const start = bytes.toString('hex')
  return mediaTypes.find((type) => signatures[type].test(start))
}

/** `image/jpg` is a common mistake. */
const normalizeMediaType = (mediaType: string): string => {
  const lower = mediaType.trim().toLowerCase()
  return lower === 'image/jpg' ? 'image/jpeg' : lower
}

const isDataUrl = (url: string): boolean => /^data:/i.test(url)

/** Whether the image is neither in the request nor in a `data:` URL. */
export const isRemote = ({ url }: ImagePart): boolean => url !== undefined && url !== '' && !isDataUrl(url)

/** A URL may have parameters between the media type and `;base64`, as in RFC 2397. */
function readDataUrl(url: string, param: string): Pick<ImagePart, 'mediaType' | 'data'> {
  const comma = url.indexOf(',')
  const header = comma < 0 || comma > maxHeaderLength ? '' : url.slice('data:'.length, comma)
  if (!/;base64$/i.test(header))
    throw invalidImage("expected a data: URL in Base64, such as 'data:image/png;base64,…'", param)
  const [mediaType = ''] = header.split(';')
  return { mediaType, data: url.slice(comma + 1) }
}

const maxHeaderLength = 256

export const invalidImage = (problem: string, param: string, cause?: unknown): LlmError =>
  new LlmError('invalid_request', `Invalid image: ${problem}.`, { param, issue: 'value' }, { cause })
