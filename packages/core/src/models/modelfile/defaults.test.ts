import { expect, test } from 'vitest'
import type { ChatInput, GenerateRequest, InfillInput, TextInput } from '../../engine/request.ts'
import { applyDefaults, type ModelfileDefaults, resolveDefaults } from './defaults.ts'
import { defaultOllamaSampling, toSampling } from './parameters.ts'

const said = (role: string, text: string) => ({ role, content: [{ type: 'text' as const, text }] })
const defaults: ModelfileDefaults = {
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

test('without a Modelfile only the dialect’s defaults apply', () => {
  const request = chat(said('user', 'Hi'))

  expect(applyDefaults(request)).toEqual(request)
  expect(
    applyDefaults({ ...request, sampling: { topK: 1 }, defaultSampling: defaultOllamaSampling }),
  ).toEqual({
    ...request,
    sampling: { ...defaultOllamaSampling, topK: 1 },
  })
})

test.each<[asked: object, parameters: object, maxTokens: number | undefined]>([
  [{ defaultMaxTokens: 16 }, {}, 16],
  [{ defaultMaxTokens: 16 }, { num_predict: 24 }, 24],
  [{ defaultMaxTokens: 16 }, { num_predict: -1 }, undefined],
  [{ defaultMaxTokens: 16, maxTokens: 5 }, { num_predict: 24 }, 5],
])('a request with %j to a model with %j gets at most %s tokens', (asked, parameters, maxTokens) => {
  const request = applyDefaults({ ...text(), ...asked }, { ...defaults, parameters: { ...parameters } })

  expect(request.maxTokens).toBe(maxTokens)
  expect(request).not.toHaveProperty('defaultMaxTokens')
})

test('a chat begins with the model’s system message and messages', () => {
  expect(applyDefaults(chat(said('user', 'Now?')), defaults).input).toEqual({
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

test('a system message of the request replaces the model’s', () => {
  const { messages } = applyDefaults(chat(said('system', 'Be Ann.'), said('user', 'Now?')), defaults)
    .input as ChatInput

  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'system', 'user'])
})

test('the model’s messages precede a text prompt, unless it continues context tokens', () => {
  const turns = [said('user', 'hi'), said('assistant', 'Hello!')]

  expect(applyDefaults(text(), defaults).input).toMatchObject({ system: 'You are Bob.', messages: turns })
  expect(applyDefaults(text({ prompt: [[1, 2], 'Hi'] }), defaults).input).not.toHaveProperty('messages')
  expect(applyDefaults(text({ system: 'Ann' }), defaults).input).toMatchObject({ system: 'Ann' })
})

test('a raw prompt is unchanged', () => {
  expect(applyDefaults(text({ template: false }), defaults).input).toEqual(text({ template: false }).input)
})

test.each<[kind: string, request: GenerateRequest]>([
  ['chat', chat(said('user', 'Hi'))],
  ['text', text()],
  ['raw text', text({ template: false })],
  ['infill', { model: 'bob', input: { kind: 'infill', prefix: 'a', suffix: 'b' } }],
])('each result has another input object: %s', (_kind, request) => {
  const inputs = [request, applyDefaults(request), applyDefaults(request)].map(({ input }) => input)

  expect(new Set(inputs).size).toBe(3)
})

test('infill uses the model’s template', () => {
  const input: InfillInput = { kind: 'infill', prefix: 'a', suffix: 'b' }

  expect(applyDefaults({ model: 'bob', input }, defaults).input).toEqual({
    ...input,
    template: '{{ .Prompt }}',
  })
})

test('the template of a request overrides the model’s', () => {
  expect(applyDefaults(text({ template: 'own' }), defaults).input.template).toBe('own')
})

test('the model’s parameters override the dialect’s defaults', () => {
  const { sampling, maxTokens, stop, load } = applyDefaults(
    { ...text(), defaultSampling: defaultOllamaSampling, sampling: { minP: 0.1 } },
    defaults,
  )

  expect(sampling).toEqual({ temperature: 0, topK: 40, topP: 0.95, minP: 0.1 })
  expect({ maxTokens, stop, load }).toEqual({
    maxTokens: 24,
    stop: ['\n\n', '<x>'],
    load: { defaultContextSize: 2048 },
  })
})

test('the request overrides the model’s parameters and stop sequences', () => {
  const { sampling, maxTokens, stop, load } = applyDefaults(
    {
      ...text(),
      sampling: { temperature: 1 },
      maxTokens: 5,
      stop: [],
      load: { contextSize: 512, keepAlive: 0 },
    },
    defaults,
  )

  expect(sampling).toEqual({ temperature: 1, topP: 0.95 })
  expect({ maxTokens, stop, load }).toEqual({
    maxTokens: 5,
    stop: [],
    load: { contextSize: 512, keepAlive: 0 },
  })
})

test('a Modelfile cannot exceed the app’s context limit', () => {
  expect(applyDefaults(text(), defaults, 1024).load).toEqual({ defaultContextSize: 1024 })
  expect(applyDefaults({ ...text(), load: { contextSize: 4096 } }, defaults, 1024).load).toEqual({
    contextSize: 4096,
  })
})

test('the context size of a Modelfile overrides a default of the request', () => {
  const load = { defaultContextSize: 512, keepAlive: 0 }

  expect(applyDefaults({ ...text(), load }, defaults).load).toEqual({ ...load, defaultContextSize: 2048 })
  expect(applyDefaults({ ...text(), load }, { ...defaults, parameters: {} }).load).toEqual(load)
})

test('invalid parameters are ignored', () => {
  const parameters = { temperature: 'hot', stop: 5, bogus: 5, top_k: -1, typical_p: 0.5, num_predict: 0 }

  expect(applyDefaults(text(), { ...defaults, parameters })).not.toHaveProperty('sampling')
  expect(applyDefaults(text(), { ...defaults, parameters })).not.toHaveProperty('stop')
})

test.each([
  [{ renderer: 'qwen3-vl-instruct' }, undefined],
  [{ model_family: 'gptoss' }, undefined],
  [{ parser: 'qwen3' }, '{{ .Prompt }}'],
  [{}, '{{ .Prompt }}'],
])('with a config of %j the template is %s', (config, template) => {
  expect(resolveDefaults({ defaults, config }).template).toBe(template)
})

test('a random seed in the request overrides the model’s seed', () => {
  const fixed: ModelfileDefaults = { ...defaults, parameters: { seed: 7 } }

  expect(applyDefaults(text(), fixed).sampling).toEqual({ seed: 7 })
  expect(applyDefaults({ ...text(), sampling: toSampling({ seed: -1 }) }, fixed).sampling).toEqual({
    seed: 'random',
  })
})
