import { expect, test } from 'vitest'
import { LlmError } from '../../../errors.ts'
import { uncached } from '../../events.ts'
import { toTemplateMessages } from '../../request.ts'
import {
  decodeVector,
  encodeVector,
  FromProcess,
  fromWireError,
  ProcessConfig,
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseGenerateRequest,
  parseRerankRequest,
  parseTokenizeRequest,
  ToProcess,
  toWireError,
} from './protocol.ts'

const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
const request = { model: 'tiny', input: { kind: 'chat', messages } }

const chat = (messages: unknown): object => ({ model: 'tiny', input: { kind: 'chat', messages } })
const text = (...prompt: unknown[]): object => ({ model: 'tiny', input: { kind: 'text', prompt } })

test('a request is read as it was sent', () => {
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

test('breakpoints arrive, on tools and on parts, and no lifetime that nobody knows', () => {
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
])('the text %j is read as it was sent', (input) => {
  expect(parseGenerateRequest({ model: 'tiny', input })).toEqual({ model: 'tiny', input })
})

test.each([
  { type: 'json' },
  { type: 'json-schema', schema: true },
  { type: 'json-schema', schema: { type: 'object', properties: {} } },
  { type: 'grammar', source: 'root ::= "a"' },
])('the format %j is read as it was sent', (format) => {
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
])('%s that nothing can be made of is refused', (param, format) => {
  expect(() => parseGenerateRequest({ ...request, format })).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test('where a call is forced, there is no format', () => {
  const input = { ...request.input, tools: [{ name: 'a', parameters: {} }], toolChoice: { mode: 'required' } }

  expect(() => parseGenerateRequest({ ...request, input })).not.toThrow()
  expect(() => parseGenerateRequest({ ...request, input, format: { type: 'json' } })).toThrow(
    expect.objectContaining({ details: { param: 'format' } }),
  )
})

test('tools, calls and results are read as they were sent', () => {
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
])('%s is refused where it cannot be kept', (param, input) => {
  const bad = { model: 'tiny', input: { kind: 'chat', messages, ...input } }

  expect(() => parseGenerateRequest(bad)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test.each([0, 1e300, 'forever'])('a model can be kept for %j', (keepAlive) => {
  expect(parseGenerateRequest({ ...request, load: { keepAlive } }).load).toEqual({ keepAlive })
})

test('half a character in a text, a system text or a role is a replacement character', () => {
  const text = parseGenerateRequest({
    model: 'tiny',
    input: { kind: 'text', prompt: ['a\ud83d', [5]], system: '\udc69' },
  })
  const role = parseGenerateRequest(chat([{ role: 'we\ud83drd', content: [] }]))

  expect(text.input).toEqual({ kind: 'text', prompt: ['a\ufffd', [5]], system: '\ufffd' })
  expect(toTemplateMessages(role.input)).toEqual([{ role: 'we\ufffdrd', content: [] }])
})

test('a request without anything optional stays without', () => {
  const read = parseGenerateRequest(request)

  expect(read).toEqual(request)
})

test('what the native code does not know does not reach it', () => {
  const read = parseGenerateRequest({ ...request, extra: 1, sampling: { temperature: 1, mirostat: 2 } })

  expect(read).toEqual({ ...request, sampling: { temperature: 1 } })
})

test('half a character in a message is a replacement character, and whole ones stay', () => {
  const read = parseGenerateRequest(
    chat([{ role: 'user', content: [{ type: 'text', text: 'a\ud83d👩‍🚀\udc69' }] }]),
  )

  expect(toTemplateMessages(read.input)[0]?.content).toEqual([{ type: 'text', text: 'a\ufffd👩‍🚀\ufffd' }])
})

test('a temperature so small that logits divided by it are infinite is 0', () => {
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
  ['fewer than no tokens to make', { ...request, maxTokens: -1 }, 'maxTokens'],
  ['half a token to make', { ...request, maxTokens: 1.5 }, 'maxTokens'],
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
  ['more messages than any context holds', chat(Array(10_001).fill(messages[0])), 'messages'],
  [
    'more parts than any message has',
    chat([{ role: 'user', content: Array(10_001).fill({ type: 'text', text: 'a' }) }]),
    'messages[0].content',
  ],
  ['65 stop sequences', { ...request, stop: Array(65).fill('a') }, 'stop'],
  ['a stop sequence of 1,025 characters', { ...request, stop: ['a'.repeat(1_025)] }, 'stop[0]'],
  ['half a character as a stop sequence', { ...request, stop: ['\udc69'] }, 'stop[0]'],
  ['more tokens to make than a double counts', { ...request, maxTokens: 2 ** 60 }, 'maxTokens'],
  [
    'a temperature that divides all logits to zero',
    { ...request, sampling: { temperature: 1e308 } },
    'temperature',
  ],
  ['a repetition that gets likelier', { ...request, sampling: { dry: { strength: -1 } } }, 'dry.strength'],
  ['a base below one', { ...request, sampling: { dry: { strength: 1, base: 0.5 } } }, 'dry.base'],
  [
    'nine breakers',
    { ...request, sampling: { dry: { strength: 1, breakers: Array(9).fill('a') } } },
    'dry.breakers',
  ],
  ['an empty breaker', { ...request, sampling: { dry: { strength: 1, breakers: [''] } } }, 'dry.breakers[0]'],
  [
    'a probability above one',
    { ...request, sampling: { xtc: { probability: 2, threshold: 0 } } },
    'xtc.probability',
  ],
  ['an answer of no length at least', { ...request, sampling: { minTokens: -1 } }, 'minTokens'],
  ['21 logprobs a token', { ...request, logprobs: 21 }, 'logprobs'],
  ['logprobs of the prompt alone', { ...request, promptLogprobs: true }, 'promptLogprobs'],
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
  [
    'a bias on more tokens than there are',
    { ...request, sampling: { logitBias: Array(300_001).fill([5, 1]) } },
    'logitBias',
  ],
  ['a bias on half a token', { ...request, sampling: { logitBias: [[0.5, 1]] } }, 'logitBias[0][0]'],
  ['a role longer than any word', chat([{ role: 'x'.repeat(65), content: [] }]), 'messages[0].role'],
  [
    'a part of an unknown kind',
    chat([{ role: 'user', content: [{ type: 'image', text: '' }] }]),
    'messages[0].content[0].type',
  ],
  ['half a token in its text', text([0.5]), 'prompt[0]'],
  ['a token below zero', text('Hi', [5, -1]), 'prompt[1]'],
  ['a token that 32 bits cannot hold', text([2 ** 31]), 'prompt[0]'],
  ['more tokens than any context holds', text(Array(2 ** 24 + 1).fill(5)), 'prompt[0]'],
  ['a number among its texts', text('Hi', 5), 'prompt[1]'],
  ['more pieces of text than anybody sends', text(...Array(10_001).fill('a')), 'prompt'],
  ['no text', { model: 'tiny', input: { kind: 'text' } }, 'prompt'],
  [
    'a template longer than anybody writes',
    { model: 'tiny', input: { kind: 'text', prompt: [], template: 'x'.repeat(64 * 1024 + 1) } },
    'template',
  ],
  [
    'a template that is neither a text nor none',
    { model: 'tiny', input: { kind: 'text', prompt: [], template: true } },
    'template',
  ],
  ['a context of fifteen tokens', { ...request, load: { contextSize: 15 } }, 'contextSize'],
  ['a context larger than any', { ...request, load: { contextSize: 2 ** 24 + 1 } }, 'contextSize'],
  ['a negative time to stay', { ...request, load: { keepAlive: -1 } }, 'keepAlive'],
  ['an infinite time to stay', { ...request, load: { keepAlive: Number.POSITIVE_INFINITY } }, 'keepAlive'],
  ['no number as a time to stay', { ...request, load: { keepAlive: Number.NaN } }, 'keepAlive'],
  ['a word as a time to stay', { ...request, load: { keepAlive: 'always' } }, 'keepAlive'],
  ['a repeatLastN below all', { ...request, sampling: { repeatLastN: -2 } }, 'repeatLastN'],
  ['thinking that is neither on nor off', { ...request, reasoning: 'high' }, 'reasoning'],
  ['an unknown way to overflow', { ...request, overflow: 'shift' }, 'overflow'],
])('a request with %s is refused by its field', (_what, value, param) => {
  const read = (): unknown => parseGenerateRequest(value)

  expect(read).toThrow(expect.objectContaining({ code: 'invalid_request', details: { param } }))
})

test.each<[read: (value: unknown) => object, request: object]>([
  [parseEmbedRequest, { model: 'm', inputs: ['Hi', [0, 5]], overflow: 'truncate', dimensions: 8, load: {} }],
  [parseEmbedRequest, { model: 'm', inputs: [] }],
  [parseRerankRequest, { model: 'm', query: 'Who?', documents: ['a', 'b'], overflow: 'error' }],
  [parseTokenizeRequest, { model: 'm', text: '', addSpecial: true, parseSpecial: false }],
  [parseDetokenizeRequest, { model: 'm', tokens: [], load: { contextSize: 16 } }],
])('%o reads what was sent', (read, request) => {
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
])('%o refuses what is not for native code by its field', (read, request, param) => {
  expect(() => read(request)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: { param } }),
  )
})

test('vectors cross the wire as 32-bit numbers', () => {
  const vector = [0, -1, 0.5, Math.fround(0.1), 3.4e38]

  expect(decodeVector(encodeVector(vector))).toEqual(vector.map(Math.fround))
  expect(decodeVector('')).toEqual([])
})

test('an error crosses the wire with its code, message and details', () => {
  const error = new LlmError('context_length', 'Too long.', { inputTokens: 9, contextSize: 8 })

  const received = fromWireError(JSON.parse(JSON.stringify(toWireError(error))))

  expect(received).toBeInstanceOf(LlmError)
  expect(received.code).toBe('context_length')
  expect(received.message).toBe('Too long.')
  expect(received.details).toEqual({ inputTokens: 9, contextSize: 8 })
})

test('the cause of an error crosses the wire for the log, apart from what clients see', () => {
  const unknown = fromWireError(toWireError(new Error('/home/me/secret.gguf is broken')))
  const known = fromWireError(
    toWireError(new LlmError('upstream', 'The model could not be loaded.', {}, { cause: 'secret' })),
  )

  expect(unknown).toMatchObject({ code: 'internal', message: expect.not.stringContaining('secret') })
  expect(String(unknown.cause)).toContain('/home/me/secret.gguf is broken')
  expect(known).toMatchObject({ code: 'upstream', message: 'The model could not be loaded.' })
  expect(known.cause).toEqual(new Error('secret'))
})

test('a library of text is more than a prompt', () => {
  const text = 'x'.repeat(65 * 1024 * 1024)
  const library = {
    ...request,
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  }

  expect(() => parseGenerateRequest(library)).toThrow('longer than')
})

test.each([
  [{ type: 'generate', id: 1, request: { anything: true }, tenant: 'ann', background: false }],
  [{ type: 'count', id: 1, request: null, tenant: '', background: false }],
  [{ type: 'render', id: 1, request: {}, tenant: '', background: false }],
  [{ type: 'embed', id: 1, request: {}, tenant: '', background: true }],
  [{ type: 'cancel', id: 1 }],
  [{ type: 'ping' }],
])('the model process understands %j', (message) => {
  expect(ToProcess.parse(message)).toEqual(message)
})

test.each([[{ type: 'cancel' }], [{ type: 'cancel', id: '1' }], [{ type: 'exit' }], ['ping'], [null]])(
  'the model process refuses %j',
  (message) => {
    expect(ToProcess.safeParse(message).success).toBe(false)
  },
)

test.each([
  [{ type: 'loaded', contextSize: 4096, sizeBytes: 1, gpuBytes: 0, notes: [], stepMs: 90 }],
  [{ type: 'failed', error: { code: 'upstream', message: 'No.', details: {} } }],
  [
    {
      type: 'events',
      events: [
        {
          id: 1,
          event: {
            type: 'start',
            model: 'tiny',
            inputTokens: 3,
            reusedTokens: 0,
            ...uncached,
            fingerprint: 'fp_1',
          },
        },
      ],
    },
  ],
  [{ type: 'events', events: [{ id: 1, event: { type: 'text', text: '', tokens: 0 } }] }],
  [{ type: 'events', events: [{ id: 1, event: { type: 'reasoning', text: 'hm', tokens: 1 } }] }],
  [{ type: 'result', id: 1, value: 12 }],
  [{ type: 'result', id: 1, value: '<user>Hi' }],
  [{ type: 'result', id: 1, value: [0, 5, 2_147_483_647] }],
  [{ type: 'result', id: 1, value: { index: 3, vector: 'AACAPw==', inputTokens: 4 } }],
  [
    {
      type: 'events',
      events: [
        {
          id: 1,
          event: {
            type: 'end',
            finishReason: 'stop',
            stopSequence: '\n',
            usage: { inputTokens: 3, reusedTokens: 0, ...uncached, outputTokens: 1 },
            timings: { loadMs: 0, promptMs: 0.5, generateMs: 1.5 },
            tokens: [1, 2],
          },
        },
      ],
    },
  ],
  [{ type: 'done', id: 1 }],
  [{ type: 'done', id: 1, error: { code: 'internal', message: 'Oh.', details: {} } }],
  [{ type: 'pong', steps: 12 }],
])('the app understands %j', (message) => {
  expect(FromProcess.parse(message)).toEqual(message)
})

test.each([
  [{ type: 'loaded' }],
  [{ type: 'loaded', contextSize: 4096, sizeBytes: Number.NaN, gpuBytes: 0, notes: [], stepMs: 90 }],
  [{ type: 'result', id: 1, value: null }],
  [{ type: 'events', events: [{ id: 1, event: { type: 'thought', text: 'hm' } }] }],
  [{ type: 'events', events: [{ event: { type: 'text', text: 'a', tokens: 1 } }] }],
  [{ type: 'done', id: 1, error: 'no' }],
  [{ type: 'pong', steps: 0.5 }],
])('the app refuses %j', (message) => {
  expect(FromProcess.safeParse(message).success).toBe(false)
})

test('a process is not started without a context or without threads', () => {
  const config = {
    runtimeDir: '/tmp/run',
    name: 'm',
    folder: '/tmp/run/process',
    modelPath: '/m.gguf',
    modelName: 'm:latest',
    fingerprint: 'fp_1',
    threads: 1,
    tuneThreads: false,
    contextSize: 1,
    parallel: 1,
    gpuLayers: 'auto',
    kvCacheType: 'f16',
  }

  expect(ProcessConfig.parse(config)).toEqual(config)
  expect(ProcessConfig.safeParse({ ...config, threads: 0 }).success).toBe(false)
  expect(ProcessConfig.safeParse({ ...config, contextSize: 0 }).success).toBe(false)
  for (const kvCacheType of ['i32', 'Q8_0', 'q4_1', 'currentQuant', 26])
    expect(ProcessConfig.safeParse({ ...config, kvCacheType }).success).toBe(false)
})
