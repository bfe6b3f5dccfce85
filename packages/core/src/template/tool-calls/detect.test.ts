import { modelPath } from '@modelmount/tiny-model'
import { expect, test } from 'vitest'
import { noiseModel, recurrentModel, slidingWindowModel } from '../../../../../test/support/models.ts'
import { readGguf } from '../../models/gguf/gguf.ts'
import { chatMl } from '../jinja.ts'
import { detectFamily, listsTools } from './detect.ts'
import { fixtureFamilies } from './fixtures/families.ts'

test.each(fixtureFamilies.map(({ name, template }) => [name, template] as const))(
  '%s is detected from the template %j',
  (name, template) => {
    expect(detectFamily(template)).toBe(name)
  },
)

test.each([
  ['hermes', modelPath],
  ['hermes', noiseModel],
  ['generic', slidingWindowModel],
  ['generic', recurrentModel],
] as const)('%s is the family of the model at %s', async (name, path) => {
  const { metadata } = await readGguf(path)

  expect(detectFamily(String(metadata['tokenizer.chat_template']))).toBe(name)
})

test('a template without tools is generic', () => {
  expect(detectFamily(chatMl)).toBe('generic')
  expect(detectFamily('')).toBe('generic')
})

test('a template that renders calls but does not list tools is generic', () => {
  const template = "{% for call in message['tool_calls'] %}<tool_call>{{ call }}</tool_call>{% endfor %}"

  expect(listsTools(template)).toBe(false)
  expect(detectFamily(template)).toBe('generic')
})
