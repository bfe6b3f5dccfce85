import { expect, test } from 'vitest'
import { toTemplateMessages } from '../request-input.ts'
import {
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
} from './parse-request.ts'

const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
const request = { model: 'tiny', input: { kind: 'chat', messages } }

const chat = (messages: unknown): object => ({ model: 'tiny', input: { kind: 'chat', messages } })
const text = (...prompt: unknown[]): object => ({ model: 'tiny', input: { kind: 'text', prompt } })

test('a valid request is parsed unchanged', () => {
  const full = {
    ...request,
    maxTokens: 1,
    stop: ['\n'],
    sampling: {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      seed: -1,
      repeatPenalty: 1.1,
      repeatLastN: -1,
      presencePenalty: -2,
      frequencyPenalty: 2,
      logitBias: [[5, -100]],
      dry: { strength: 0.8, base: 1.75, allowedLength: 2, lastN: -1, breakers: ['\n'] },
      xtc: { probability: 0.5, threshold: 0.1 },
      ignoreEos: true,
      minTokens: 5,
    },
    reasoning: false,
    logprobs: 20,
    overflow: 'truncate',
    load: { contextSize: 16, keepAlive: 0.5 },
    returnTokens: true,
  }

  const read = parseGenerateRequest(JSON.parse(JSON.stringify(full)))

  expect(read).toEqual(full)
})

test('breakpoints on tools and parts are kept, and an unknown lifetime is rejected', () => {
  const input = (cache: string): object => ({
    kind: 'chat',
    tools: [{ name: 'now', parameters: {}, cache }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi', cache }] },
      { role: 'assistant', content: [{ type: 'tool-call', id: '1', name: 'now', arguments: '{}', cache }] },
      { role: 'tool', content: [{ type: 'tool-result', id: '1', content: [], cache }] },
    ],
  })

  for (const cache of ['5m', '1h'])
    expect(parseGenerateRequest({ model: 'tiny', input: input(cache) }).input).toEqual(input(cache))
  expect(() => parseGenerateRequest({ model: 'tiny', input: input('10m') })).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})

test.each([
  [{ kind: 'text', prompt: [] }],
  [{ kind: 'text', prompt: ['Hi', [], [0, 2_147_483_647], ''] }],
  [{ kind: 'text', prompt: ['Hi'], system: '', template: false }],
  [{ kind: 'infill', prefix: 'a', suffix: '' }],
])('the input %j is parsed unchanged', (input) => {
  expect(parseGenerateRequest({ model: 'tiny', input })).toEqual({ model: 'tiny', input })
})

test.each([
  { type: 'json' },
  { type: 'json-schema', schema: true },
  { type: 'json-schema', schema: { type: 'object', properties: {} } },
  { type: 'grammar', source: 'root ::= "a"' },
])('the format %j is parsed unchanged', (format) => {
  expect(parseGenerateRequest({ ...request, format })).toEqual({ ...request, format })
})

const circular: Record<string, unknown> = {}
circular.self = circular
test.each([
  ['format.type', { type: 'yaml' }],
  ['format.schema', { type: 'json-schema', schema: [] }],
  ['format.schema', { type: 'json-schema', schema: { $comment: 'x'.repeat(1024 * 1024) } }],
  ['format.schema', { type: 'json-schema', schema: circular }],
  ['format.source', { type: 'grammar', source: '' }],
  ['format.source', { type: 'grammar', source: 'x'.repeat(256 * 1024 + 1) }],
])('an invalid %s is rejected', (param, format) => {
  expect(() => parseGenerateRequest({ ...request, format })).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test('a forced tool call cannot be combined with a format', () => {
  const input = { ...request.input, tools: [{ name: 'a', parameters: {} }], toolChoice: { mode: 'required' } }

  expect(() => parseGenerateRequest({ ...request, input })).not.toThrow()
  expect(() => parseGenerateRequest({ ...request, input, format: { type: 'json' } })).toThrow(
    expect.objectContaining({ details: { param: 'format' } }),
  )
})

test('tools, tool calls and tool results are parsed unchanged', () => {
  const input = {
    kind: 'chat',
    messages: [
      ...messages,
      { role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'get_time', arguments: '{' }] },
      {
        role: 'tool',
        content: [{ type: 'tool-result', id: 'a', content: [{ type: 'text', text: '12' }], isError: true }],
      },
    ],
    tools: [{ name: 'get_time', description: 'Now.', parameters: { type: 'object', properties: {} } }],
    toolChoice: { mode: 'auto', names: ['get_time'] },
    templateOptions: { date: ['today'] },
  }

  expect(parseGenerateRequest({ model: 'tiny', input })).toEqual({ model: 'tiny', input })
})

test.each([
  ['tools[0].name', { tools: [{ name: '', parameters: {} }] }],
  ['tools[0].name', { tools: [{ name: 'a'.repeat(129), parameters: {} }] }],
  ['tools[0].parameters', { tools: [{ name: 'a', parameters: [] }] }],
  ['tools', { tools: Array.from({ length: 1_025 }, (_, n) => ({ name: `a${n}`, parameters: {} })) }],
  [
    'tools',
    {
      tools: [
        { name: 'a', parameters: {} },
        { name: 'a', parameters: {} },
      ],
    },
  ],
  ['toolChoice.mode', { toolChoice: { mode: 'required', names: [] } }],
  ['toolChoice.parallel', { toolChoice: { mode: 'auto', parallel: true } }],
  ['tools[0].strict', { tools: [{ name: 'a', parameters: {}, strict: 1 }] }],
  ['toolChoice.names', { toolChoice: { mode: 'auto', names: ['a'] } }],
  ['messages', { tools: [{ name: 'a', parameters: { long: 'a'.repeat(64 * 1024 * 1024) } }] }],
])('an invalid %s is rejected', (param, input) => {
  const bad = { model: 'tiny', input: { kind: 'chat', messages, ...input } }

  expect(() => parseGenerateRequest(bad)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test.each([0, 1e300, 'forever'])('a keep-alive of %j is accepted', (keepAlive) => {
  expect(parseGenerateRequest({ ...request, load: { keepAlive } }).load).toEqual({ keepAlive })
})

test('a lone surrogate in a text, a system text or a role becomes U+FFFD', () => {
  const text = parseGenerateRequest({
    model: 'tiny',
    input: { kind: 'text', prompt: ['a\ud83d', [5]], system: '\udc69' },
  })
  const role = parseGenerateRequest(chat([{ role: 'we\ud83drd', content: [] }]))

  expect(text.input).toEqual({ kind: 'text', prompt: ['a\ufffd', [5]], system: '\ufffd' })
  expect(toTemplateMessages(role.input)).toEqual([{ role: 'we\ufffdrd', content: [] }])
})

test('absent optional fields stay absent', () => {
  const read = parseGenerateRequest(request)

  expect(read).toEqual(request)
})

test('unknown fields are dropped', () => {
  const read = parseGenerateRequest({ ...request, extra: 1, sampling: { temperature: 1, mirostat: 2 } })

  expect(read).toEqual({ ...request, sampling: { temperature: 1 } })
})

test('a lone surrogate in a message becomes U+FFFD, and surrogate pairs stay', () => {
  const read = parseGenerateRequest(
    chat([{ role: 'user', content: [{ type: 'text', text: 'a\ud83d👩‍🚀\udc69' }] }]),
  )

  expect(toTemplateMessages(read.input)[0]?.content).toEqual([{ type: 'text', text: 'a\ufffd👩‍🚀\ufffd' }])
})

test('a temperature that makes logits infinite becomes 0', () => {
  const read = parseGenerateRequest({ ...request, sampling: { temperature: 1e-40 } })

  expect(read.sampling).toEqual({ temperature: 0 })
})

test.each<[what: string, value: unknown, param: string]>([
  ['no object', 'hello', ''],
  ['no model', { input: request.input }, 'model'],
  ['no messages', { model: 'tiny', input: { kind: 'chat', messages: [] } }, 'messages'],
  ['an unknown kind of input', { model: 'tiny', input: { kind: 'audio', messages } }, 'kind'],
  [
    'no role',
    { model: 'tiny', input: { kind: 'chat', messages: [{ role: '', content: [] }] } },
    'messages[0].role',
  ],
  [
    'text that is a number',
    {
      model: 'tiny',
      input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 5 }] }] },
    },
    'messages[0].content[0].text',
  ],
  ['a negative maxTokens', { ...request, maxTokens: -1 }, 'maxTokens'],
  ['a fractional maxTokens', { ...request, maxTokens: 1.5 }, 'maxTokens'],
  ['an empty stop sequence', { ...request, stop: ['\n', ''] }, 'stop[1]'],
  ['a temperature below zero', { ...request, sampling: { temperature: -0.1 } }, 'temperature'],
  ['a temperature that is no number', { ...request, sampling: { temperature: Number.NaN } }, 'temperature'],
  [
    'an infinite penalty',
    { ...request, sampling: { presencePenalty: Number.POSITIVE_INFINITY } },
    'presencePenalty',
  ],
  ['a topP above one', { ...request, sampling: { topP: 1.1 } }, 'topP'],
  ['a topK that is no whole number', { ...request, sampling: { topK: 0.5 } }, 'topK'],
  ['a seed that is no whole number', { ...request, sampling: { seed: 0.5 } }, 'seed'],
  ['a seed that a double cannot hold', { ...request, sampling: { seed: 2 ** 53 } }, 'seed'],
  ['a bias that is no number', { ...request, sampling: { logitBias: [[5, '1']] } }, 'logitBias[0][1]'],
  ['10,001 messages', chat(Array(10_001).fill(messages[0])), 'messages'],
  [
    '10,001 parts in a message',
    chat([{ role: 'user', content: Array(10_001).fill({ type: 'text', text: 'a' }) }]),
    'messages[0].content',
  ],
  ['65 stop sequences', { ...request, stop: Array(65).fill('a') }, 'stop'],
  ['a stop sequence of 1,025 characters', { ...request, stop: ['a'.repeat(1_025)] }, 'stop[0]'],
  ['a lone surrogate as a stop sequence', { ...request, stop: ['\udc69'] }, 'stop[0]'],
  ['a maxTokens that a double cannot count', { ...request, maxTokens: 2 ** 60 }, 'maxTokens'],
  [
    'a temperature that would make all logits zero',
    { ...request, sampling: { temperature: 1e308 } },
    'temperature',
  ],
  ['a negative DRY strength', { ...request, sampling: { dry: { strength: -1 } } }, 'dry.strength'],
  ['a DRY base below one', { ...request, sampling: { dry: { strength: 1, base: 0.5 } } }, 'dry.base'],
  [
    'nine DRY breakers',
    { ...request, sampling: { dry: { strength: 1, breakers: Array(9).fill('a') } } },
    'dry.breakers',
  ],
  [
    'an empty DRY breaker',
    { ...request, sampling: { dry: { strength: 1, breakers: [''] } } },
    'dry.breakers[0]',
  ],
  [
    'an XTC probability above one',
    { ...request, sampling: { xtc: { probability: 2, threshold: 0 } } },
    'xtc.probability',
  ],
  ['a negative minTokens', { ...request, sampling: { minTokens: -1 } }, 'minTokens'],
  ['21 logprobs a token', { ...request, logprobs: 21 }, 'logprobs'],
  ['promptLogprobs without logprobs', { ...request, promptLogprobs: true }, 'promptLogprobs'],
  ['a topK that 32 bits cannot hold', { ...request, sampling: { topK: 2 ** 31 } }, 'topK'],
  ['a repeat penalty that divides by zero', { ...request, sampling: { repeatPenalty: 0 } }, 'repeatPenalty'],
  [
    'a repeat penalty that a float cannot hold',
    { ...request, sampling: { repeatPenalty: 1e39 } },
    'repeatPenalty',
  ],
  [
    'a presence penalty that a float cannot hold',
    { ...request, sampling: { presencePenalty: -1e39 } },
    'presencePenalty',
  ],
  [
    'a frequency penalty that a float cannot hold',
    { ...request, sampling: { frequencyPenalty: 1e39 } },
    'frequencyPenalty',
  ],
  [
    'a bias that a float cannot hold',
    { ...request, sampling: { logitBias: [[5, 1e39]] } },
    'logitBias[0][1]',
  ],
  [
    'a bias on a token of 64 bits',
    { ...request, sampling: { logitBias: [[2 ** 33, 1]] } },
    'logitBias[0][0]',
  ],
  ['300,001 biases', { ...request, sampling: { logitBias: Array(300_001).fill([5, 1]) } }, 'logitBias'],
  ['a bias on half a token', { ...request, sampling: { logitBias: [[0.5, 1]] } }, 'logitBias[0][0]'],
  ['a role of 65 characters', chat([{ role: 'x'.repeat(65), content: [] }]), 'messages[0].role'],
  [
    'a part of an unknown kind',
    chat([{ role: 'user', content: [{ type: 'image', text: '' }] }]),
    'messages[0].content[0].type',
  ],
  ['a fractional token id', text([0.5]), 'prompt[0]'],
  ['a negative token id', text('Hi', [5, -1]), 'prompt[1]'],
  ['a token id that 32 bits cannot hold', text([2 ** 31]), 'prompt[0]'],
  ['more token ids than the largest context', text(Array(2 ** 24 + 1).fill(5)), 'prompt[0]'],
  ['a number among its texts', text('Hi', 5), 'prompt[1]'],
  ['10,001 pieces of text', text(...Array(10_001).fill('a')), 'prompt'],
  ['no text', { model: 'tiny', input: { kind: 'text' } }, 'prompt'],
  [
    'a template that is too long',
    { model: 'tiny', input: { kind: 'text', prompt: [], template: 'x'.repeat(64 * 1024 + 1) } },
    'template',
  ],
  ['a template of true', { model: 'tiny', input: { kind: 'text', prompt: [], template: true } }, 'template'],
  ['a context size of 15', { ...request, load: { contextSize: 15 } }, 'contextSize'],
  ['a context size above the limit', { ...request, load: { contextSize: 2 ** 24 + 1 } }, 'contextSize'],
  ['a negative keep-alive', { ...request, load: { keepAlive: -1 } }, 'keepAlive'],
  ['an infinite keep-alive', { ...request, load: { keepAlive: Number.POSITIVE_INFINITY } }, 'keepAlive'],
  ['a keep-alive of NaN', { ...request, load: { keepAlive: Number.NaN } }, 'keepAlive'],
  ['a keep-alive of an unknown word', { ...request, load: { keepAlive: 'always' } }, 'keepAlive'],
  ['a repeatLastN below -1', { ...request, sampling: { repeatLastN: -2 } }, 'repeatLastN'],
  ['an unknown reasoning mode', { ...request, reasoning: 'high' }, 'reasoning'],
  ['an unknown overflow mode', { ...request, overflow: 'shift' }, 'overflow'],
])('a request with %s is rejected by its field', (_what, value, param) => {
  const parse = (): unknown => parseGenerateRequest(value)

  expect(parse).toThrow(expect.objectContaining({ code: 'invalid_request', details: { param } }))
})

test.each<[read: (value: unknown) => object, request: object]>([
  [parseEmbedRequest, { model: 'm', inputs: ['Hi', [0, 5]], overflow: 'truncate', dimensions: 8, load: {} }],
  [parseEmbedRequest, { model: 'm', inputs: [] }],
  [parseRerankRequest, { model: 'm', query: 'Who?', documents: ['a', 'b'], overflow: 'error' }],
  [parseTokenizeRequest, { model: 'm', text: '', addSpecial: true, parseSpecial: false }],
  [parseDetokenizeRequest, { model: 'm', tokens: [], load: { contextSize: 16 } }],
])('%o parses a valid request unchanged', (read, request) => {
  expect(read(JSON.parse(JSON.stringify(request)))).toEqual(request)
})

test.each<[read: (value: unknown) => object, request: object, param: string]>([
  [parseEmbedRequest, { model: 'm', inputs: 'Hi' }, 'inputs'],
  [parseEmbedRequest, { model: 'm', inputs: ['Hi', ''] }, 'inputs[1]'],
  [parseEmbedRequest, { model: 'm', inputs: [[]] }, 'inputs[0]'],
  [parseEmbedRequest, { model: 'm', inputs: [[0.5]] }, 'inputs[0]'],
  [parseEmbedRequest, { model: 'm', inputs: Array(10_001).fill('a') }, 'inputs'],
  [parseEmbedRequest, { model: 'm', inputs: Array(3).fill('x'.repeat(2 ** 25)) }, 'inputs'],
  [parseEmbedRequest, { model: 'm', inputs: ['Hi'], dimensions: 2 ** 31 }, 'dimensions'],
  [parseEmbedRequest, { inputs: ['Hi'] }, 'model'],
  [parseRerankRequest, { model: 'm', query: '', documents: ['a'] }, 'query'],
  [parseRerankRequest, { model: 'm', query: 'Who?', documents: ['a', ''] }, 'documents[1]'],
  [parseRerankRequest, { model: 'm', query: 'Who?', documents: [[5]] }, 'documents[0]'],
  [parseTokenizeRequest, { model: 'm', text: 5 }, 'text'],
  [parseTokenizeRequest, { model: 'm', text: 'x'.repeat(65 * 1024 * 1024) }, 'text'],
  [parseDetokenizeRequest, { model: 'm', tokens: [-1] }, 'tokens'],
  [parseDetokenizeRequest, { model: 'm', tokens: 'Hi' }, 'tokens'],
])('%o rejects an invalid request by its field', (read, request, param) => {
  expect(() => read(request)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test('a text above the limit is rejected', () => {
  const text = 'x'.repeat(65 * 1024 * 1024)
  const library = {
    ...request,
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  }

  expect(() => parseGenerateRequest(library)).toThrow('longer than')
})
