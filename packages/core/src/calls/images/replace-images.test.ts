import { expect, test } from 'vitest'
import type { ChatInput, ImagePart, Part } from '../../engine/request.ts'
import { replaceImages } from './replace-images.ts'

const image = (more: Partial<ImagePart> & { cache?: '5m' } = {}): Part => ({
  ...{ type: 'image', mediaType: '', data: 'x', ...more },
})
const text = (text: string): Part => ({ type: 'text', text })
const chat = (...content: readonly Part[]): ChatInput => ({
  ...{ kind: 'chat', messages: [{ role: 'user', content }] },
})
const note = '[An image, which this model cannot see.]'

test('an input without images stays the same object', () => {
  const input = chat(text('a'), text('b'))

  expect(replaceImages(input)).toBe(input)
})

test('the text of an image joins the texts around it, up to a cache breakpoint', () => {
  expect(replaceImages(chat(text('a'), image({ replacement: ' b ' }), text('c')))).toEqual(
    chat(text('a b c')),
  )
  expect(replaceImages(chat(text('a'), image({ replacement: 'b', cache: '5m' }), text('c')))).toEqual(
    chat({ type: 'text', text: 'ab', cache: '5m' }, text('c')),
  )
})

test('an image in a result of a tool becomes a note, and another image is rejected', () => {
  const result = (...content: readonly Part[]): Part => ({ type: 'tool-result', id: 'a', content })

  expect(replaceImages(chat(result(text('Rain.'), image())))).toEqual(chat(result(text(`Rain.${note}`))))
  expect(() => replaceImages(chat(text('a'), image()))).toThrow(
    expect.objectContaining({
      ...{ code: 'invalid_request', message: 'An image is not supported by this model.' },
      details: { param: 'input.messages[0].content[1]', issue: 'unsupported' },
    }),
  )
  expect(() => replaceImages(chat(image({ param: 'images[0]' })))).toThrow(
    expect.objectContaining({ details: { param: 'images[0]', issue: 'unsupported' } }),
  )
  expect(() =>
    replaceImages({ kind: 'text', prompt: ['a'], images: [{ type: 'image', mediaType: '', data: 'x' }] }),
  ).toThrow(expect.objectContaining({ details: { param: 'input.images[0]', issue: 'unsupported' } }))
})
