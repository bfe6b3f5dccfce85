import { expect, test } from 'vitest'
import type { ChatInput, GenerateRequest, InfillInput, TextInput } from '../../engine/request.ts'
import { type Recipe, recipeOf, withRecipe } from './defaults.ts'
import { ollamaSampling, toSampling } from './parameters.ts'

const said = (role: string, text: string) => ({ role, content: [{ type: 'text' as const, text }] })
const recipe: Recipe = {
  template: '{{ .Prompt }}',
  system: 'You are Bob.',
  parameters: { temperature: 0, num_ctx: 2048, stop: ['\n\n', '<x>'], top_p: 0.95, num_predict: 24 },
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Hello!' },
  ],
  license: [],
}
const chat = (...messages: ChatInput['messages']): GenerateRequest => ({
  model: 'bob',
  input: { kind: 'chat', messages },
})
const text = (input: Partial<TextInput> = {}): GenerateRequest => ({
  model: 'bob',
  input: { kind: 'text', prompt: ['Hi'], ...input },
})

test('without a recipe only the defaults are added', () => {
  const request = chat(said('user', 'Hi'))

  expect(withRecipe(request)).toEqual(request)
  expect(withRecipe({ ...request, sampling: { topK: 1 }, defaultSampling: ollamaSampling })).toEqual({
    ...request,
    sampling: { ...ollamaSampling, topK: 1 },
  })
})

test.each<[asked: object, parameters: object, maxTokens: number | undefined]>([
  [{ defaultMaxTokens: 16 }, {}, 16],
  [{ defaultMaxTokens: 16 }, { num_predict: 24 }, 24],
  [{ defaultMaxTokens: 16 }, { num_predict: -1 }, undefined],
  [{ defaultMaxTokens: 16, maxTokens: 5 }, { num_predict: 24 }, 5],
])('asked %j, a model with the parameters %j says at most %s tokens', (asked, parameters, maxTokens) => {
  const request = withRecipe({ ...text(), ...asked }, { ...recipe, parameters: { ...parameters } })

  expect(request.maxTokens).toBe(maxTokens)
  expect(request).not.toHaveProperty('defaultMaxTokens')
})

test('a conversation begins with the system of the model and its turns', () => {
  expect(withRecipe(chat(said('user', 'Now?')), recipe).input).toEqual({
    kind: 'chat',
    template: '{{ .Prompt }}',
    messages: [
      said('system', 'You are Bob.'),
      said('user', 'hi'),
      said('assistant', 'Hello!'),
      said('user', 'Now?'),
    ],
  })
})

test('who begins with a system message has that one alone', () => {
  const { messages } = withRecipe(chat(said('system', 'Be Ann.'), said('user', 'Now?')), recipe)
    .input as ChatInput

  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'system', 'user'])
})

test('a text has the turns of the model before it, unless it goes on from tokens', () => {
  const turns = [said('user', 'hi'), said('assistant', 'Hello!')]

  expect(withRecipe(text(), recipe).input).toMatchObject({ system: 'You are Bob.', messages: turns })
  expect(withRecipe(text({ prompt: [[1, 2], 'Hi'] }), recipe).input).not.toHaveProperty('messages')
  expect(withRecipe(text({ system: 'Ann' }), recipe).input).toMatchObject({ system: 'Ann' })
})

test('a raw text stays as it is', () => {
  expect(withRecipe(text({ template: false }), recipe).input).toEqual(text({ template: false }).input)
})

test('a gap is filled by the template of the model', () => {
  const input: InfillInput = { kind: 'infill', prefix: 'a', suffix: 'b' }

  expect(withRecipe({ model: 'bob', input }, recipe).input).toEqual({ ...input, template: '{{ .Prompt }}' })
})

test('the template of a request wins', () => {
  expect(withRecipe(text({ template: 'own' }), recipe).input.template).toBe('own')
})

test('parameters hold where the request says nothing, over the defaults', () => {
  const { sampling, maxTokens, stop, load } = withRecipe(
    { ...text(), defaultSampling: ollamaSampling, sampling: { minP: 0.1 } },
    recipe,
  )

  expect(sampling).toEqual({ temperature: 0, topK: 40, topP: 0.95, minP: 0.1 })
  expect({ maxTokens, stop, load }).toEqual({
    maxTokens: 24,
    stop: ['\n\n', '<x>'],
    load: { contextSize: 2048 },
  })
})

test('what the request says wins, and its stop sequences replace those of the model', () => {
  const { sampling, maxTokens, stop, load } = withRecipe(
    {
      ...text(),
      sampling: { temperature: 1 },
      maxTokens: 5,
      stop: [],
      load: { contextSize: 512, keepAlive: 0 },
    },
    recipe,
  )

  expect(sampling).toEqual({ temperature: 1, topP: 0.95 })
  expect({ maxTokens, stop, load }).toEqual({
    maxTokens: 5,
    stop: [],
    load: { contextSize: 512, keepAlive: 0 },
  })
})

test('a recipe gets no larger context than the app allows', () => {
  expect(withRecipe(text(), recipe, 1024).load).toEqual({ contextSize: 1024 })
  expect(withRecipe({ ...text(), load: { contextSize: 4096 } }, recipe, 1024).load).toEqual({
    contextSize: 4096,
  })
})

test('parameters that are nonsense are left out', () => {
  const parameters = { temperature: 'hot', stop: 5, bogus: 5, top_k: -1, typical_p: 0.5, num_predict: 0 }

  expect(withRecipe(text(), { ...recipe, parameters })).not.toHaveProperty('sampling')
  expect(withRecipe(text(), { ...recipe, parameters })).not.toHaveProperty('stop')
})

test.each([
  [{ renderer: 'qwen3-vl-instruct' }, undefined],
  [{ model_family: 'gptoss' }, undefined],
  [{ parser: 'qwen3' }, '{{ .Prompt }}'],
  [{}, '{{ .Prompt }}'],
])('with a config of %j the template is %s', (config, template) => {
  expect(recipeOf({ recipe, config }).template).toBe(template)
})

test('a request that asks for any seed undoes the one of the model', () => {
  const fixed: Recipe = { ...recipe, parameters: { seed: 7 } }

  expect(withRecipe(text(), fixed).sampling).toEqual({ seed: 7 })
  expect(withRecipe({ ...text(), sampling: toSampling({ seed: -1 }) }, fixed).sampling).toEqual({
    seed: 'random',
  })
})
