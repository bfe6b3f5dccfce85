import { expect, test } from 'vitest'
import {
  contextLengthExceeded,
  type Issue,
  LlmError,
  type LlmErrorCode,
  modelNotFound,
} from '../../errors.ts'
import type { FieldIssue } from '../parse.ts'
import { formatIssue, renderError, renderErrorFrame } from './errors.ts'

const bodyOf = (error: LlmError): unknown => JSON.parse(renderError(error, 'req_1').body as string)

test.each<[LlmErrorCode, number, string]>([
  ['invalid_request', 400, 'invalid_request_error'],
  ['context_length', 400, 'invalid_request_error'],
  ['authentication', 401, 'authentication_error'],
  ['permission', 403, 'permission_error'],
  ['quota', 400, 'invalid_request_error'],
  ['not_found', 404, 'not_found_error'],
  ['timeout', 408, 'timeout_error'],
  ['conflict', 409, 'conflict_error'],
  ['too_large', 413, 'request_too_large'],
  ['rate_limit', 429, 'rate_limit_error'],
  ['overloaded', 529, 'overloaded_error'],
  ['unavailable', 503, 'api_error'],
  ['upstream', 500, 'api_error'],
  ['invalid_output', 500, 'api_error'],
  ['internal', 500, 'api_error'],
  ['method_not_allowed', 405, 'invalid_request_error'],
])('%s is rendered with the status %i and the type %s', (code, status, type) => {
  const response = renderError(new LlmError(code, 'What to do next.'), 'req_1')

  expect(response.status).toBe(status)
  expect(response.headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    ...(code === 'quota' && { 'x-should-retry': 'false' }),
  })
  expect(JSON.parse(response.body as string)).toMatchObject({ type: 'error', error: { type } })
})

test('an error is an envelope with the request id', () => {
  expect(bodyOf(new LlmError('upstream', 'It has ended.'))).toEqual({
    type: 'error',
    error: { type: 'api_error', message: 'It has ended.' },
    request_id: 'req_1',
  })
})

test('the error for an unknown model has the message of the API', () => {
  expect(bodyOf(modelNotFound('team/llama:8b'))).toMatchObject({ error: { message: 'model: team/llama:8b' } })
})

test('an unknown path keeps its message', () => {
  const error = new LlmError('not_found', 'Invalid URL (GET /v1/nope)')

  expect(bodyOf(error)).toMatchObject({ error: { message: 'Invalid URL (GET /v1/nope)' } })
})

test('the error for a too long prompt has the text that agents match on', () => {
  expect(bodyOf(contextLengthExceeded(210_000, 200_000))).toMatchObject({
    error: { message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  })
})

test.each([
  ['format.schema#/properties/a/not', 'output_config.format.schema: No.'],
  ['tools[3].parameters#/properties/a\nb', 'tools.3.custom.input_schema: No.'],
  ['tools[3].name', 'No.'],
  ['messages', 'No.'],
])('an engine error for the field %j has the message %j', (param, message) => {
  expect(bodyOf(new LlmError('invalid_request', 'No.', { param }))).toMatchObject({ error: { message } })
})

test('`retry-after` is in whole seconds', () => {
  const error = new LlmError('overloaded', 'Later.', { retryAfterMs: 1_500 })

  expect(renderError(error, 'req_1').headers).toMatchObject({ 'retry-after': '2' })
})

test('the cause is not sent', () => {
  const { body } = renderError(LlmError.from(new Error('ENOENT /home/ann/secret.gguf')), 'req_1')

  expect(body).not.toContain('secret')
})

test('an error in a stream is an `error` event', () => {
  const frame = renderErrorFrame(new LlmError('overloaded', 'Too many.'), 'req_1')

  expect(frame).toBe(
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Too many."},"request_id":"req_1"}\n\n',
  )
})

test.each<[Issue, Partial<FieldIssue>, string]>([
  ['missing', {}, 'Field required'],
  ['type', { expected: 'int' }, 'Input should be a valid integer'],
  ['type', { expected: 'object' }, 'Input should be a valid dictionary'],
  ['type', { reason: 'Input should be a dream' }, 'Input should be a dream'],
  ['value', { reason: 'is odd.' }, 'is odd.'],
  ['empty', { reason: 'at least one message is required' }, 'at least one message is required'],
  ['array_too_long', { limit: 3 }, 'List should have at most 3 items'],
  ['string_too_long', { limit: 3 }, 'String should have at most 3 characters'],
  ['decimal_too_big', { limit: 1 }, 'Input should be less than or equal to 1'],
  ['decimal_too_small', { limit: 0 }, 'Input should be greater than or equal to 0'],
  ['integer_too_big', { limit: 5 }, 'Input should be less than or equal to 5'],
  ['integer_too_small', { limit: 0 }, 'Input should be greater than or equal to 0'],
  ['unsupported', { reason: '`tools` is not supported yet.' }, '`tools` is not supported yet.'],
])('the issue %s with %j has the message %j', (issue, more, words) => {
  const problem = {
    param: 'messages[0].content[12].text',
    reason: '',
    isCustom: false,
    received: 0,
    expected: undefined,
    limit: undefined,
  }

  expect(formatIssue({ ...problem, issue, ...more })).toBe(`messages.0.content.12.text: ${words}`)
})

test('the error for a body that is no object names no field', () => {
  const problem = {
    param: '',
    issue: 'type',
    reason: '',
    isCustom: false,
    received: 0,
    expected: 'object',
    limit: undefined,
  } as const

  expect(formatIssue(problem)).toBe('The request body has to be a JSON object.')
  expect(formatIssue({ ...problem, issue: 'value', reason: 'Too much of it.' })).toBe('Too much of it.')
})
