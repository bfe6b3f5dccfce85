import { expect, test } from 'vitest'
import { images } from '../../../../../test/support/images.ts'
import type { ImagePart } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { checkImage, sizeOf } from './check-image.ts'

const param = 'messages[0].content[0]'
const check = (image: Partial<ImagePart>): ImagePart =>
  checkImage({
    image: { type: 'image', mediaType: '', data: '', ...image },
    ...{ param, isInResult: false },
  })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

test.each(Object.entries(images))('the media type of %s is found in the bytes', (format, data) => {
  const expected = { type: 'image', mediaType: `image/${format}`, data, param }

  expect(check({ data })).toEqual(expected)
  expect(check({ data, mediaType: ` IMAGE/${format.toUpperCase()} ` })).toEqual(expected)
  expect(check({ url: `data:image/${format};base64,${data}` })).toEqual(expected)
})

test('a data URL may have parameters and no media type, and image/jpg is image/jpeg', () => {
  const png = { type: 'image', mediaType: 'image/png', data: images.png, param }

  expect(check({ url: `DATA:image/png;name=a.png;BASE64,${images.png}` })).toEqual(png)
  expect(check({ url: `data:;base64,${images.png}` })).toEqual(png)
  expect(check({ data: images.jpeg, mediaType: 'image/jpg' }).mediaType).toBe('image/jpeg')
})

test.each<[string, Partial<ImagePart>, string]>([
  ['nothing', {}, 'got none'],
  ['an empty URL', { url: '' }, 'got none'],
  ['an empty data URL', { url: 'data:image/png;base64,' }, 'got none'],
  ['a data URL without Base64', { url: 'data:image/png,abcd' }, 'expected a data: URL in Base64'],
  ['a data URL without a comma', { url: 'data:image/png;base64' }, 'expected a data: URL in Base64'],
  ['a text named as a PNG file', { mediaType: 'image/png', data: base64('Hello, world!') }, 'formats'],
  ['an SVG file', { mediaType: 'image/svg+xml', data: base64('<svg xmlns="x"/>') }, 'formats'],
  ['a PDF file', { data: base64('%PDF-1.7 and more') }, 'formats'],
  ['three bytes', { data: 'iVBO' }, 'formats'],
  ['a JPEG file named as a PNG file', { mediaType: 'image/png', data: images.jpeg }, 'is image/jpeg'],
  ['a character that is none of Base64', { data: `${images.png.slice(0, 40)}!!!!` }, 'in Base64'],
  ['a line break', { data: `${images.png.slice(0, 40)}\n${images.png.slice(41)}` }, 'in Base64'],
  ['padding in the middle', { data: `${images.png.slice(0, 40)}A===${images.png}` }, 'in Base64'],
  ['missing padding', { data: images.png.slice(0, 41) }, 'in Base64'],
])('%s is rejected', (_, image, message) => {
  expect(() => check(image)).toThrow(
    expect.objectContaining({
      ...{ code: 'invalid_request', details: { param, issue: 'value' } },
      message: expect.stringContaining(message),
    }),
  )
})

test('an image of 20 MiB is accepted, and a larger one is rejected without its data', () => {
  const start = Buffer.from(images.png, 'base64')
  const sized = (bytes: number): string =>
    Buffer.concat([start, Buffer.alloc(bytes - start.length)]).toString('base64')
  const largest = sized(limits.imageBytes)

  expect(sizeOf(largest)).toBe(limits.imageBytes)
  expect(check({ data: largest }).mediaType).toBe('image/png')
  expect(() => check({ data: sized(limits.imageBytes + 1) })).toThrow(
    'Invalid image: expected an image of at most 20971520 bytes, got 20971521.',
  )
})
