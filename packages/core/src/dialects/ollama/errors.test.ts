import { expect, test } from 'vitest'
import {
  contextDenied,
  contextLengthExceeded,
  invalidRequest,
  LlmError,
  type LlmErrorCode,
  type LlmErrorDetails,
  modelNotFound,
} from '../../errors.ts'
import { renderError, renderErrorFrame } from './errors.ts'

const bodyOf = (error: LlmError): unknown => JSON.parse(renderError(error).body as string)

test.each<[LlmErrorCode, number]>([
  ['invalid_request', 400],
  ['context_length', 400],
  ['authentication', 401],
  ['permission', 403],
  ['quota', 429],
  ['not_found', 404],
  ['timeout', 408],
  ['conflict', 409],
  ['too_large', 413],
  ['rate_limit', 429],
  ['overloaded', 503],
  ['upstream', 500],
  ['invalid_output', 500],
  ['internal', 500],
])('%s is rendered with the status %i and one text', (code, status) => {
  const response = renderError(new LlmError(code, 'What to do next.'))

  expect(response.status).toBe(status)
  expect(response.headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    ...(code === 'quota' && { 'x-should-retry': 'false' }),
  })
  expect(response.body).toBe('{"error":"What to do next."}')
})

test.each([
  [new LlmError('method_not_allowed', 'GET is not allowed.'), 405, '405 method not allowed'],
  [new LlmError('not_found', 'Invalid URL.', { path: '/api/nope' }), 404, '404 page not found'],
])('%o is rendered as plain text, like a router error', (error, status, body) => {
  expect(renderError(error)).toEqual({
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body,
  })
})

test.each<[string, LlmError, string]>([
  ['a missing model', modelNotFound('llama'), "model 'llama' not found"],
  ['another missing thing', new LlmError('not_found', 'The blob is not there.'), 'The blob is not there.'],
  [
    'a prompt that is too long',
    contextLengthExceeded(5_000, 4_096),
    'the prompt is longer than the context length currently available to the model: it has 5000 tokens, and the context holds 4096',
  ],
  [
    'a prompt that is too long for the loaded context, but not for the requested one',
    new LlmError('context_length', 'Too long.', {
      inputTokens: 5_000,
      contextSize: 4_096,
      requestedContextSize: 8_192,
    }),
    "the prompt is longer than the context length currently available to the model: it has 5000 tokens, and the context holds 4096. A `num_ctx` of 8192 requires the scope 'models', which the caller lacks. In the app, `local.contextSize` sets the context size for all callers.",
  ],
  [
    'a load with a context size that the caller may not choose',
    contextDenied(8_192),
    "A `num_ctx` of 8192 requires the scope 'models', which the caller lacks. In the app, `local.contextSize` sets the context size for all callers.",
  ],
  ['a prompt of unknown length', new LlmError('context_length', 'Too long.'), 'Too long.'],
  ['no body', invalidRequest('No JSON.', { emptyBody: true }), 'missing request body'],
  ['a wrong field', invalidRequest('invalid think', { param: 'think' }), 'invalid think'],
  [
    'a format that cannot be enforced',
    invalidRequest('No.', { param: 'format.schema#/not' }),
    'invalid format: No.',
  ],
  [
    'a parameter schema that cannot be enforced',
    invalidRequest('No.', { param: 'tools[3].parameters#' }),
    'invalid tools[3].function.parameters: No.',
  ],
])('the error for %s has the text that clients match on', (_what, error, message) => {
  expect(bodyOf(error)).toEqual({ error: message })
  expect(JSON.parse(renderErrorFrame(error))).toEqual({ error: message })
})

test.each<[LlmErrorDetails, string | undefined]>([
  [{ retryAfterMs: 1_001 }, '2'],
  [{}, undefined],
])('with %j, retry-after is %s', (details, seconds) => {
  const { headers } = renderError(new LlmError('overloaded', 'Later.', details))

  expect(headers['retry-after']).toBe(seconds)
})

test('an error in a stream is one line', () => {
  const frame = renderErrorFrame(new LlmError('upstream', 'The process\nended.'))

  expect(frame).toBe('{"error":"The process\\nended."}\n')
})

test('the cause is not sent', () => {
  const error = LlmError.from(new Error('password is hunter2'))

  expect(renderError(error).body).not.toContain('hunter2')
  expect(renderErrorFrame(error)).not.toContain('hunter2')
})
