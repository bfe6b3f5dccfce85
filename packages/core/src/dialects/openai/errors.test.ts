import { expect, test } from 'vitest'
import {
  contextLengthExceeded,
  type Issue,
  invalidRequest,
  LlmError,
  type LlmErrorCode,
  modelNotFound,
} from '../../errors.ts'
import type { FieldIssue } from '../parse.ts'
import { formatIssue, renderError, renderErrorFrame, toResponseError } from './errors.ts'

const bodyOf = (error: LlmError): unknown => JSON.parse(renderError(error).body as string)

test.each<[LlmErrorCode, number, string, string | null]>([
  ['invalid_request', 400, 'invalid_request_error', null],
  ['context_length', 400, 'invalid_request_error', 'context_length_exceeded'],
  ['authentication', 401, 'invalid_request_error', 'invalid_api_key'],
  ['permission', 403, 'invalid_request_error', null],
  ['quota', 429, 'insufficient_quota', 'insufficient_quota'],
  ['not_found', 404, 'invalid_request_error', null],
  ['timeout', 408, 'invalid_request_error', 'request_timeout'],
  ['conflict', 409, 'invalid_request_error', null],
  ['too_large', 413, 'invalid_request_error', 'request_too_large'],
  ['rate_limit', 429, 'requests', 'rate_limit_exceeded'],
  ['overloaded', 503, 'server_error', 'server_overloaded'],
  ['upstream', 500, 'server_error', null],
  ['invalid_output', 500, 'server_error', null],
  ['internal', 500, 'server_error', null],
  ['method_not_allowed', 405, 'invalid_request_error', 'method_not_supported'],
])('%s has the status %i, the type %s and the code %s', (code, status, type, wireCode) => {
  const response = renderError(new LlmError(code, 'What to do next.'))

  expect(response.status).toBe(status)
  expect(response.headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    ...(code === 'quota' && { 'x-should-retry': 'false' }),
  })
  expect(JSON.parse(response.body as string)).toMatchObject({ error: { type, param: null, code: wireCode } })
})

test('an error is an envelope with all four fields', () => {
  const body = bodyOf(invalidRequest('Too hot.', { param: 'temperature', issue: 'decimal_too_big' }))

  expect(body).toEqual({
    error: {
      message: 'Too hot.',
      type: 'invalid_request_error',
      param: 'temperature',
      code: 'decimal_above_max_value',
    },
  })
})

test.each<[Issue, string]>([
  ['missing', 'missing_required_parameter'],
  ['type', 'invalid_type'],
  ['value', 'invalid_value'],
  ['empty', 'empty_array'],
  ['array_too_long', 'array_above_max_length'],
  ['string_too_long', 'string_above_max_length'],
  ['decimal_too_big', 'decimal_above_max_value'],
  ['decimal_too_small', 'decimal_below_min_value'],
  ['integer_too_big', 'integer_above_max_value'],
  ['integer_too_small', 'integer_below_min_value'],
  ['unsupported', 'unsupported_parameter'],
])('the issue %s has the code %s', (issue, code) => {
  const body = bodyOf(invalidRequest('No.', { param: 'x', issue }))

  expect(body).toMatchObject({ error: { param: 'x', code } })
})

test('an unknown previous response has its own code', () => {
  const body = bodyOf(invalidRequest('No.', { param: 'previous_response_id', issue: 'value' }))

  expect(body).toMatchObject({
    error: { param: 'previous_response_id', code: 'previous_response_not_found' },
  })
})

test.each<[LlmErrorCode, string]>([
  ['upstream', 'server_error'],
  ['internal', 'server_error'],
  ['invalid_request', 'invalid_prompt'],
  ['context_length', 'context_length_exceeded'],
  ['overloaded', 'server_overloaded'],
])('the error %s in a response stream has the code %s', (code, said) => {
  expect(toResponseError(new LlmError(code, 'No.'))).toEqual({ code: said, message: 'No.' })
})

test('a missing model has its own code, and no param', () => {
  const response = renderError(modelNotFound('llama'))

  expect(response.status).toBe(404)
  expect(JSON.parse(response.body as string)).toEqual({
    error: {
      message: 'model "llama" not found',
      type: 'invalid_request_error',
      param: null,
      code: 'model_not_found',
    },
  })
})

test('the error for a too long prompt has the text that agents match on', () => {
  const body = bodyOf(contextLengthExceeded(5_000, 4_096))

  expect(body).toEqual({
    error: {
      message:
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens. Please reduce the length of the messages.",
      type: 'invalid_request_error',
      param: null,
      code: 'context_length_exceeded',
    },
  })
})

test.each([
  [0, '1'],
  [1, '1'],
  [1_000, '1'],
  [1_001, '2'],
  [90_000, '90'],
])('a wait of %i ms is sent as `retry-after: %s`', (retryAfterMs, seconds) => {
  const { headers } = renderError(new LlmError('overloaded', 'Later.', { retryAfterMs }))

  expect(headers['retry-after']).toBe(seconds)
})

test('the cause is not sent', () => {
  const error = LlmError.from(new Error('password is hunter2'))

  expect(renderError(error).body).not.toContain('hunter2')
  expect(renderErrorFrame(error)).not.toContain('hunter2')
})

test('an error in a stream is one event', () => {
  const frame = renderErrorFrame(new LlmError('upstream', 'The process\nended.'))

  expect(frame).toBe(
    'data: {"error":{"message":"The process\\nended.","type":"server_error","param":null,"code":null}}\n\n',
  )
})

test.each<[Partial<FieldIssue>, string]>([
  [{ param: '', issue: 'type' }, 'The request body has to be a JSON object.'],
  [{ param: 'model', issue: 'missing' }, "Missing required parameter: 'model'."],
  [{ param: 'stop[1]', issue: 'value', reason: 'is odd.' }, "Invalid 'stop[1]': is odd."],
])('the issue %j has the message %j', (problem, message) => {
  const said = formatIssue({
    param: '',
    issue: 'value',
    reason: '',
    isCustom: false,
    received: undefined,
    expected: undefined,
    limit: undefined,
    ...problem,
  })

  expect(said).toBe(message)
})
