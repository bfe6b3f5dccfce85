import { expect, test } from 'vitest'
import type { GenerateRequest } from '../../engine/request.ts'
import { toTemplateMessages } from '../../engine/request-input.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { ChatCompletionRequest, CompletionRequest } from './schema.ts'
import { toGenerateRequest, toTextRequests } from './translate.ts'

/** Validates a body with the schema and translates it. */
const translate = (fields: object): GenerateRequest =>
  toGenerateRequest(
    parse(
      ChatCompletionRequest,
      { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], ...fields },
      formatIssue,
    ),
  )

test("a minimal request is sampled with the defaults of OpenAI's API", () => {
  const request = translate({})

  expect(request).toEqual({
    model: 'tiny',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    reasoning: 'auto',
    sampling: { temperature: 1, topP: 1 },
  })
})

test('messages keep their order, and `developer` becomes `system`', () => {
  const { input } = translate({
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'system', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'assistant' },
    ],
  })

  expect(toTemplateMessages(input)).toEqual([
    { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
    { role: 'system', content: [{ type: 'text', text: 'Be kind.' }] },
    { role: 'user', content: [{ type: 'text', text: 'a\nb' }] },
    { role: 'assistant', content: [] },
  ])
})

test('sampling options are mapped to engine options', () => {
  const { sampling } = translate({
    temperature: 0,
    top_p: 0.5,
    top_k: 0,
    min_p: 0.1,
    seed: 0,
    repeat_penalty: 1.1,
    presence_penalty: 0,
    frequency_penalty: -1,
    logit_bias: { '5': -100, '60': 2.5 },
  })

  expect(sampling).toEqual({
    temperature: 0,
    topP: 0.5,
    topK: 0,
    minP: 0.1,
    seed: 0,
    repeatPenalty: 1.1,
    presencePenalty: 0,
    frequencyPenalty: -1,
    logitBias: [
      [5, -100],
      [60, 2.5],
    ],
  })
})

test.each([
  [{ max_tokens: 5 }, 5],
  [{ max_completion_tokens: 6 }, 6],
  [{ max_tokens: 5, max_completion_tokens: 6 }, 6],
  [{ max_tokens: 5, max_completion_tokens: null }, 5],
])('%j limits the answer to %i tokens', (fields, maxTokens) => {
  expect(translate(fields).maxTokens).toBe(maxTokens)
})

test.each([[{}], [{ max_tokens: -1 }], [{ max_tokens: null }]])('%j sets no limit', (fields) => {
  expect(translate(fields)).not.toHaveProperty('maxTokens')
})

test.each([
  [{ stop: '\n' }, ['\n']],
  [{ stop: ['a', '', 'b'] }, ['a', 'b']],
])('%j sets the stop sequences %j', (fields, stop) => {
  expect(translate(fields).stop).toEqual(stop)
})

test.each([[{}], [{ stop: null }], [{ stop: [] }], [{ stop: '' }], [{ stop: [''] }]])(
  '%j sets no stop sequences',
  (fields) => {
    expect(translate(fields)).not.toHaveProperty('stop')
  },
)

test.each([
  [{ '5': 1, ' hi': -2 }],
  [
    [
      [5, 1],
      [' hi', -2],
    ],
  ],
])('the biases of tokens and texts in %j are pairs', (logit_bias) => {
  expect(translate({ logit_bias }).sampling?.logitBias).toEqual([
    [5, 1],
    [' hi', -2],
  ])
  expect(translate({ logit_bias: [['a', false]] }).sampling?.logitBias).toEqual([['a', -100]])
})

test('output options are mapped to engine options', () => {
  const request = translate({
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: 'none',
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'array' } } },
    logprobs: true,
    top_logprobs: 3,
    reasoning_effort: 'low',
  })

  expect(request).toMatchObject({
    input: { toolChoice: { mode: 'none' }, templateOptions: { reasoning_effort: 'low' } },
    format: { type: 'json-schema', schema: { type: 'array' } },
    logprobs: 3,
    reasoning: true,
  })
})

test.each([
  [{ grammar: 'root ::= "a"', response_format: { type: 'json_object' } }, 'grammar'],
  [{ grammar: 'root ::= "a"', json_schema: {} }, 'grammar'],
  [{ json_schema: {}, response_format: { type: 'json_object', schema: {} } }, 'json_schema'],
])('%j has two output constraints', (fields, param) => {
  const error = expect.objectContaining({ code: 'invalid_request', details: { param, issue: 'value' } })

  expect(() => translate(fields)).toThrow(error)
  const body = parse(CompletionRequest, { model: 'tiny', prompt: 'a', ...fields }, formatIssue)
  expect(() => toTextRequests(body)).toThrow(error)
})

test('each prompt of a completion becomes a separate request with the same options', () => {
  const body = parse(CompletionRequest, { model: 'tiny', prompt: ['a', [5]], seed: 7 }, formatIssue)

  const [first, second, ...others] = toTextRequests(body)

  expect(first?.input).toEqual({ kind: 'text', prompt: ['a'], template: false })
  expect(second?.input).toEqual({ kind: 'text', prompt: [[5]], template: false })
  expect({ ...first, input: undefined }).toEqual({ ...second, input: undefined })
  expect(first).toMatchObject({ defaultMaxTokens: 16, sampling: { seed: 7 } })
  expect(others).toEqual([])
})

test.each([
  [{ n_predict: 5 }, 5],
  [{ n_predict: 5, max_tokens: 9 }, 5],
  [{ n_predict: -1, max_tokens: 9 }, undefined],
  [{ n_predict: null, max_tokens: 9 }, 9],
])('%j limits the output as n_predict does', (fields, maxTokens) => {
  expect(translate(fields).maxTokens).toBe(maxTokens)
})

test.each([
  [{ enable_thinking: false }, false],
  [{ enable_thinking: true }, true],
  [{ enable_thinking: true, chat_template_kwargs: { enable_thinking: false } }, false],
  [{ enable_thinking: true, reasoning_effort: 'none' }, false],
])('%j turns reasoning on or off', (fields, reasoning) => {
  expect(translate(fields).reasoning).toBe(reasoning)
})

test('with the reasoning_format `none`, reasoning stays in the text, and cannot be turned on or off', () => {
  expect('reasoning' in translate({ reasoning_format: 'none' })).toBe(false)
  expect(translate({ reasoning_format: 'deepseek' }).reasoning).toBe('auto')
  for (const fields of [
    { reasoning_effort: 'low' },
    { enable_thinking: false },
    { chat_template_kwargs: { enable_thinking: true } },
  ])
    expect(() => translate({ reasoning_format: 'none', ...fields })).toThrow("Invalid 'reasoning_format'")
})
