import { expect, test } from 'vitest'
import {
  defaultSettings,
  exampleSchema,
  exampleTools,
  parseTools,
  type Settings,
  toRequest,
} from './settings.ts'

const requestOf = (changes: Partial<Settings>) =>
  toRequest({ ...defaultSettings, model: 'tiny', ...changes }, [{ role: 'user', text: 'Hello' }])

test('empty fields leave everything to the model', () => {
  expect(requestOf({})).toEqual({
    request: { model: 'tiny', messages: [{ role: 'user', text: 'Hello' }], tools: [], isCached: true },
  })
})

test('fields become numbers, tools and a schema', () => {
  const parsed = requestOf({
    system: 'Be brief.',
    temperature: '0,5',
    maxTokens: '20',
    seed: '0',
    thinking: 'off',
    tools: exampleTools,
    schema: exampleSchema,
  })

  expect(parsed).toMatchObject({
    request: {
      system: 'Be brief.',
      temperature: 0.5,
      maxTokens: 20,
      seed: 0,
      isThinking: false,
      tools: [{ name: 'get_weather', parameters: { type: 'object' } }],
      schema: { type: 'object' },
    },
  })
})

test('each wrong field has its own message', () => {
  expect(requestOf({ temperature: 'warm', tools: '[1]', schema: '[]' })).toEqual({
    errors: {
      temperature: 'Expected a number.',
      tools: 'Tool 1: expected an object with name, description and parameters.',
      schema: 'Expected a JSON Schema: an object.',
    },
  })
  expect(requestOf({ tools: '{' })).toMatchObject({
    errors: { tools: expect.stringContaining('Not valid JSON') },
  })
})

test.each([
  ['the short form', { name: 'now', parameters: { type: 'object' } }],
  ['the OpenAI API', { type: 'function', function: { name: 'now', parameters: { type: 'object' } } }],
  ['the Anthropic API', { name: 'now', input_schema: { type: 'object' } }],
])('a tool in the form of %s is accepted', (_, tool) => {
  expect(parseTools(JSON.stringify(tool))).toEqual({
    value: [{ name: 'now', parameters: { type: 'object' } }],
  })
})
