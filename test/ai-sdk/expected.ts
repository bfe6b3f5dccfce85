/** What an app sees in each situation of `situations.mjs`, with both versions of the SDK. */
import { expect } from 'vitest'

const text = (text: string) => [{ type: 'text', text }]
const usage = (inputTokens: number, outputTokens: number, more: object = {}) => ({
  ...{ inputTokens, outputTokens, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  ...more,
})
const paris = { city: 'Paris', isWarm: true }
const user = (question: string) => ({ role: 'user', content: text(question) })

/** @param version major version of the SDK */
export const expectedScripted = (version: 6 | 7): Readonly<Record<string, unknown>> => ({
  'generateText returns the text, the usage and the finish reason': {
    text: 'Hello there.',
    usage: usage(2, 2),
    finishReason: 'stop',
    warnings: [],
    modelId: 'tiny',
    hasMetadata: true,
  },
  'the settings of the SDK and the options of the provider reach the engine': [
    {
      model: 'tiny',
      input: { kind: 'chat', messages: [user('Hi')], templateOptions: { verbose: true } },
      reasoning: false,
      sampling: {
        ...{ temperature: 0.5, topP: 0.9, topK: 5, seed: 7, presencePenalty: 0.1, frequencyPenalty: 0.2 },
        ...{ minP: 0.1, repeatPenalty: 1.1 },
      },
      maxTokens: 20,
      stop: ['END'],
    },
  ],
  'streamText streams words in order': [
    ...['start', 'start-step', 'text-start', 'text-delta: Hello', 'text-delta:  there.', 'text-end'],
    ...['finish-step', 'finish'],
  ],
  'reasoning is separate from the text': {
    text: 'Four.',
    reasoningText: 'Hm, easy.',
    usage: usage(1, 3, { reasoning: 2 }),
    types: [
      ...['start', 'start-step', 'reasoning-start', 'reasoning-delta', 'reasoning-delta', 'reasoning-end'],
      ...['text-start', 'text-delta', 'text-end', 'finish-step', 'finish'],
    ],
  },
  // Version 6 does not pass the setting `reasoning` on.
  'the effort of reasoning reaches the engine':
    version === 6
      ? [
          ['auto', {}],
          ['auto', {}],
          ['auto', {}],
        ]
      : [
          ['auto', {}],
          [false, {}],
          [true, { reasoning_effort: 'high' }],
        ],
  'a tool loop calls tools in parallel, and the model gets their results': {
    text: 'Both are warm.',
    finishReason: 'stop',
    reasons: ['tool-calls', 'stop'],
    second: [
      user('Is it warm in Paris and Rome?'),
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'I need two.' },
          { type: 'tool-call', id: 'call_a', name: 'get_weather', arguments: '{"city":"Paris"}' },
          { type: 'tool-call', id: 'call_b', name: 'get_weather', arguments: '{"city":"Rome"}' },
        ],
      },
      {
        role: 'tool',
        content: [
          resultOf('call_a', '{"city":"Paris","temperature":21}'),
          resultOf('call_b', '{"city":"Rome","temperature":21}'),
        ],
      },
    ],
  },
  'a streamed tool call arrives in pieces': [
    ...[['start'], ['start-step'], ['text-start'], ['text-delta', 'Let me see.'], ['text-end']],
    ...[['tool-input-start'], ['tool-input-delta', '{"city":'], ['tool-input-delta', '"Paris"}']],
    ...[['tool-input-end'], ['tool-call', { city: 'Paris' }]],
    ...[['tool-result', { city: 'Paris', temperature: 21 }], ['finish-step']],
    ...[['start-step'], ['text-start'], ['text-delta', 'Warm.'], ['text-end'], ['finish-step'], ['finish']],
  ],
  'a failing tool is reported to the model': {
    text: 'It sank.',
    result: {
      role: 'tool',
      content: [
        {
          ...resultOf('call_a', `${version === 6 ? '' : 'Error: '}There is no such city.`),
          isError: true,
        },
      ],
    },
  },
  'a tool call that the token limit cuts off is not executed': {
    toolCalls: [],
    finishReason: 'length',
    executed: [],
  },
  'the choice of a tool reaches the engine, and a forced call has no response format': [
    { mode: 'auto', hasFormat: false },
    { mode: 'none', hasFormat: false },
    { mode: 'required', hasFormat: false },
    { mode: 'required', names: ['other'], hasFormat: false },
    { mode: 'required', parallel: false, hasFormat: false },
  ],
  'generateObject and Output.object constrain the answer to the schema': {
    object: paris,
    output: paris,
    free: paris,
    formats: [
      ['json-schema', ['city', 'isWarm']],
      ['json-schema', ['city', 'isWarm']],
      ['json', []],
    ],
  },
  'streamObject and partialOutputStream yield partial objects': {
    partials: [{ city: 'Par' }, { city: 'Paris' }, paris],
    object: paris,
    outputs: [{ city: 'Par' }, { city: 'Paris' }, paris],
  },
  'embed, embedMany and rerank use the engine': {
    lengths: [8, 4, 4],
    tokens: [5, 13],
    ranked: ['a red fox', 'a red cat'],
    objects: 2,
  },
  'the SDK retries an overloaded engine after its retry-after': {
    text: 'Hello.',
    streamed: 'Hello.',
    requests: 4,
    isQuick: true,
  },
  'a rate limit is an APICallError that the SDK may retry, a spending limit is none': {
    limited: {
      name: 'AI_APICallError',
      message: 'This request would exceed the limit of 1 request per minute. Try again in 60 s.',
      statusCode: 429,
      isRetryable: true,
      responseHeaders: { 'retry-after': '60', 'retry-after-ms': expect.stringMatching(/^5\d{4}$/) },
      data: { code: 'rate_limit' },
    },
    spent: {
      name: 'AI_APICallError',
      message: 'The spending limit is reached.',
      statusCode: 429,
      isRetryable: false,
      data: { code: 'quota' },
    },
    tomorrow: {
      name: 'AI_APICallError',
      message: 'Tomorrow.',
      statusCode: 429,
      isRetryable: false,
      responseHeaders: { 'retry-after': '86400', 'retry-after-ms': '86400000' },
      data: { code: 'rate_limit' },
    },
  },
  'a caller can use only its models': {
    text: 'Hello.',
    denied: {
      name: 'AI_APICallError',
      message: 'This caller may not use the model "large".',
      statusCode: 403,
      isRetryable: false,
      data: { code: 'permission' },
    },
  },
  'a stream that fails midway ends with an error part': [
    ...[['start'], ['start-step'], ['text-start'], ['text-delta', 'Hel'], ['error', 'The model is gone.']],
    ...[['finish-step'], ['finish']],
  ],
  'an abort ends the answer in the engine': {
    name: 'AbortError',
    types: ['start', 'start-step', 'text-start', 'text-delta', 'abort'],
    running: 0,
    requests: 2,
  },
  'a reader that cancels its stream ends the answer in the engine': {
    first: { type: 'stream-start', warnings: [] },
    running: 0,
  },
  'an image is refused without a download': {
    error: {
      name: 'AI_UnsupportedFunctionalityError',
      message: 'Files in messages (image/png) are not supported: models of Modelmount read text only.',
    },
    requests: 0,
  },
  'an unknown option of the provider is an error that names it': [
    {
      name: 'AI_InvalidArgumentError',
      message: expect.stringMatching(/^providerOptions\.modelmount\.min_p: unknown option\. .* minP,/),
    },
    {
      name: 'AI_InvalidArgumentError',
      message: 'providerOptions.modelmount.endUser: expected a string, got 7.',
    },
  ],
  'cache breakpoints of messages, parts and tools are read again': {
    usages: [usage(5, 1, { cacheWrite: 4 }), usage(5, 1, { cacheRead: 4 })],
    marked: ['5m', '5m', '5m', '5m', 'none'],
  },
  'log probabilities are in the metadata of the provider': {
    fingerprint: 'fp_scripted',
    logprobs: [{ id: 1, text: 'Hello', bytes: [72], logprob: -0.5, top: [] }],
  },
  'an agent calls a tool through middleware': {
    text: 'Warm.',
    sampling: { temperature: 0.2 },
    roles: ['system', 'user', 'assistant', 'tool'],
  },
  'a response for a chat page streams events': {
    type: 'text/event-stream',
    events: [
      ...['start', 'start-step', 'text-start', 'text-delta', 'text-delta', 'text-end', 'finish-step'],
      'finish',
    ],
  },
  'a registry of providers finds the models': { text: 'Hello.', length: 8 },
})

export const expectedReal: Readonly<Record<string, unknown>> = {
  'the built-in model answers, and streams the same answer': {
    text: 'Hello! How can I help you?',
    finishReason: 'stop',
    isSame: true,
    isStream: true,
  },
  'the answer of the built-in model matches the schema': { areValid: [true, true, true], hasPartials: true },
  'the built-in model calls a tool and reads its result': {
    toolName: 'get_weather',
    input: { city: 'Paris' },
    steps: 2,
    mentions: true,
  },
  'a forced tool call matches its schema': { types: ['string'], finishReason: 'tool-calls' },
  'an abort stops the built-in model, which then answers the next call': {
    last: 'abort',
    text: 'Hello! How can I help you?',
  },
  'the encoder embeds texts': { lengths: [64, 64, 64], cosines: [true, false] },
  'errors of the engine name the field': [
    {
      name: 'AI_APICallError',
      statusCode: 404,
      data: { code: 'not_found', param: 'model' },
      message: 'model "nope" not found',
    },
    {
      name: 'AI_APICallError',
      statusCode: 400,
      data: { code: 'invalid_request', param: 'temperature' },
      message: "Invalid 'temperature': Too small: expected number to be >=0",
    },
    {
      name: 'AI_APICallError',
      statusCode: 400,
      data: { code: 'context_length' },
      message: expect.stringMatching(/^The prompt has 9009 tokens and the context holds \d+,/),
    },
  ],
}

function resultOf(id: string, result: string) {
  return { type: 'tool-result', id, name: 'get_weather', content: text(result) }
}
