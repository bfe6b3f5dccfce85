import { expect, test } from 'vitest'
import type { z } from 'zod'
import { parse } from '../parse.ts'
import { createIssueFormatter } from './issue-formatter.ts'
import * as schema from './schema.ts'

const unmarshal = 'json: cannot unmarshal'

// The messages are Ollama 0.33.0's responses to the same bodies.
test.each<[name: string, schema: z.ZodType, body: unknown, said: string]>([
  ['ChatRequest', schema.ChatRequest, [], `${unmarshal} array into Go value of type api.ChatRequest`],
  ...(
    [
      [{ model: 1 }, 'number', 'model of type string'],
      [{ Model: [] }, 'array', 'model of type string'],
      [{ messages: 'x' }, 'string', 'messages of type []api.Message'],
      [{ messages: [{ role: 1 }] }, 'number', 'messages.role of type string'],
      [{ messages: [{ images: 'a' }] }, 'string', 'messages.images of type []api.ImageData'],
      [{ messages: [{ tool_calls: {} }] }, 'object', 'messages.tool_calls of type []api.ToolCall'],
      [{ messages: ['x'] }, 'string', 'messages of type api.Message'],
      [{ tools: 'x' }, 'string', 'tools of type api.Tools'],
      [{ tools: ['x'] }, 'string', 'tools of type api.Tool'],
      [{ stream: 1 }, 'number', 'stream of type bool'],
      [{ top_logprobs: 'x' }, 'string', 'top_logprobs of type int'],
      [{ options: [] }, 'array', 'options of type map[string]interface {}'],
    ] as const
  ).map(
    ([body, type, field]) =>
      [
        'ChatRequest',
        schema.ChatRequest,
        body,
        `${unmarshal} ${type} into Go struct field ChatRequest.${field}`,
      ] as [string, z.ZodType, unknown, string],
  ),
  [
    'CreateRequest',
    schema.CreateRequest,
    { files: [] },
    `${unmarshal} array into Go struct field CreateRequest.files of type map[string]string`,
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { think: 'banana' },
    'invalid think value: "banana" (must be "high", "medium", "low", "max", true, or false)',
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { think: 1 },
    'think must be a boolean or string ("high", "medium", "low", "max", true, or false)',
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { format: 'xml' },
    'invalid format: "\\"xml\\""; expected "json" or a valid JSON Schema object',
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { format: 5 },
    'invalid format: "5"; expected "json" or a valid JSON Schema object',
  ],
  ['ChatRequest', schema.ChatRequest, { top_logprobs: -1 }, 'top_logprobs must be between 0 and 20'],
  ['ChatRequest', schema.ChatRequest, { keep_alive: '300' }, 'time: missing unit in duration "300"'],
  [
    'ChatRequest',
    schema.ChatRequest,
    { options: { temperature: 'hot' } },
    'option "temperature" must be of type float32',
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { options: { num_ctx: '4096' } },
    'option "num_ctx" must be of type integer',
  ],
  [
    'ChatRequest',
    schema.ChatRequest,
    { options: { use_mmap: 1 } },
    'option "use_mmap" must be of type boolean',
  ],
  ['ChatRequest', schema.ChatRequest, { options: { stop: 'x' } }, 'option "stop" must be of type array'],
  [
    'ChatRequest',
    schema.ChatRequest,
    { options: { stop: [1] } },
    'option "stop" must be of an array of strings',
  ],
  ...[{}, [1], ['a', 1], [['a']], [null]].map(
    (input) =>
      ['EmbedRequest', schema.EmbedRequest, { input }, 'invalid input type'] as [
        string,
        z.ZodType,
        unknown,
        string,
      ],
  ),
])("an invalid %s has Ollama's error message: %#", (name, shape, body, said) => {
  expect(() => parse(shape, body, createIssueFormatter(name))).toThrow(
    expect.objectContaining({ message: said }),
  )
})

test.each([
  [{ options: { top_k: -1 } }, 'invalid options.top_k: expected 0 at least.'],
  [{ options: { num_ctx: 2 ** 30 } }, 'invalid options.num_ctx: expected 16777216 at most.'],
  [{ options: { stop: Array(65).fill('a') } }, 'invalid options.stop: expected 64 items at most.'],
  [{ messages: [{ role: 'r'.repeat(65) }] }, 'invalid messages[0].role: expected 64 characters at most.'],
  [{ messages: [null] }, 'invalid messages[0]: expected an object.'],
  [{ tools: [{}] }, 'invalid tools[0].function: expected an object.'],
  [
    { tools: [{ function: { name: '' } }] },
    'invalid tools[0].function.name: expected a text that is not empty.',
  ],
])('for %j, which Ollama accepts or rejects without details, the error is %j', (body, said) => {
  expect(() => parse(schema.ChatRequest, body, createIssueFormatter('ChatRequest'))).toThrow(
    expect.objectContaining({ message: said }),
  )
})
