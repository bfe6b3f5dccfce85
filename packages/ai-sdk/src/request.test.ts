import type { LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { toGenerateCall } from './request.ts'

const prompt: LanguageModelV3CallOptions['prompt'] = [
  { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
]
const find = { type: 'function' as const, name: 'find', inputSchema: { type: 'object' as const } }

test('without settings, the model and its Modelfile decide', () => {
  const { request, warnings } = toGenerateCall('tiny', { prompt })

  expect(request).toEqual({
    model: 'tiny',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    reasoning: 'auto',
    sampling: {},
  })
  expect(warnings).toEqual([])
})

test('the options of the provider take precedence over the effort of reasoning', () => {
  const providerOptions = { modelmount: { reasoning: false, templateOptions: { reasoning_effort: 'low' } } }

  const { request } = toGenerateCall('tiny', { prompt, reasoning: 'high', providerOptions })

  expect(request).toMatchObject({ reasoning: false, input: { templateOptions: { reasoning_effort: 'low' } } })
})

test('the end user and the background are options of the call', () => {
  const providerOptions = { modelmount: { endUser: 'u1', background: true, overflow: 'truncate' } }

  const { request, callerOptions } = toGenerateCall('tiny', { prompt, providerOptions })

  expect(callerOptions).toEqual({ endUser: 'u1', background: true })
  expect(request).toMatchObject({ overflow: 'truncate', sampling: {} })
})

test('a grammar constrains the text, and excludes a JSON response format', () => {
  const providerOptions = { modelmount: { grammar: 'root ::= "yes" | "no"' } }

  const { request } = toGenerateCall('tiny', { prompt, providerOptions, responseFormat: { type: 'text' } })

  expect(request.format).toEqual({ type: 'grammar', source: 'root ::= "yes" | "no"' })
  expect(() => toGenerateCall('tiny', { prompt, providerOptions, responseFormat: { type: 'json' } })).toThrow(
    'providerOptions.modelmount.grammar: cannot be combined with a JSON response format. Remove one of them.',
  )
})

test('tools that another provider executes and examples of inputs cause warnings', () => {
  const { request, warnings } = toGenerateCall('tiny', {
    prompt,
    tools: [
      { type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} },
      { ...find, description: 'Finds.', strict: true, inputExamples: [{ input: { what: 'cat' } }] },
    ],
  })

  expect(request.input).toMatchObject({
    tools: [{ name: 'find', description: 'Finds.', parameters: { type: 'object' }, strict: true }],
    toolChoice: { mode: 'auto' },
  })
  expect(warnings).toEqual([
    { type: 'unsupported', feature: 'the tool openai.web_search', details: 'Its provider executes it.' },
    { type: 'unsupported', feature: 'inputExamples of the tool find' },
  ])
})

test('other providers keep their options to themselves', () => {
  const providerOptions = { openai: { user: 'u1' } }

  expect(toGenerateCall('tiny', { prompt, providerOptions }).request.sampling).toEqual({})
})
