import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import {
  contextLengthExceeded,
  formatFieldPath,
  invalidRequest,
  LlmError,
  type LlmErrorCode,
  modelNotFound,
} from './errors.ts'

test('an LlmError is passed on as it is', () => {
  const error = new LlmError('overloaded', 'Too many calls.', { retryAfterMs: 1_000 })

  const passed = LlmError.from(error)

  expect(passed).toBe(error)
})

test('LlmError.is recognises errors of each copy of the package, and nothing else', () => {
  const foreign = { [Symbol.for('modelmount.LlmError')]: true, code: 'quota', message: 'Spent.', details: {} }
  const unknownCode = { ...foreign, code: 'spent' }

  expect([new LlmError('quota', 'Spent.'), foreign].map(LlmError.is)).toEqual([true, true])
  expect([new Error('Spent.'), unknownCode, 'quota', null, undefined].map(LlmError.is)).not.toContain(true)
})

test('an LlmError of another copy of the package is passed on as it is', () => {
  const foreign = { [Symbol.for('modelmount.LlmError')]: true, code: 'quota', message: 'Spent.', details: {} }

  const passed = LlmError.from(foreign)

  expect(passed).toBe(foreign)
})

test('an unknown error becomes internal, and its message stays in the cause', () => {
  const cause = new Error('password is hunter2')

  const error = LlmError.from(cause)

  expect(error.code).toBe('internal')
  expect(error.message).toBe('Something went wrong inside the server.')
  expect(error.cause).toBe(cause)
})

test.each([
  ['a string', 'boom'],
  ['null', null],
  ['undefined', undefined],
  ['an object without the mark', { code: 'quota', message: 'Spent.', details: {} }],
])('a thrown value becomes internal: %s', (_what, cause) => {
  const error = LlmError.from(cause)

  expect(error).toBeInstanceOf(LlmError)
  expect(error.code).toBe('internal')
  expect(error.cause).toBe(cause)
})

test('an LlmError is an Error with its name, message, cause and empty details', () => {
  const cause = new Error('socket closed')

  const error = new LlmError('upstream', 'The model process ended.', undefined, { cause })

  expect(error).toBeInstanceOf(Error)
  expect(String(error)).toBe('LlmError: The model process ended.')
  expect(error.cause).toBe(cause)
  expect(error.details).toEqual({})
})

test('the documentation lists the HTTP status of every code', async () => {
  const statuses: Readonly<Record<LlmErrorCode, number>> = {
    invalid_request: 400,
    context_length: 400,
    authentication: 401,
    permission: 403,
    not_found: 404,
    method_not_allowed: 405,
    timeout: 408,
    conflict: 409,
    too_large: 413,
    rate_limit: 429,
    quota: 429,
    upstream: 500,
    internal: 500,
    invalid_output: 500,
    overloaded: 503,
    unavailable: 503,
  }
  const page = await readFile(new URL('../../../docs/guides/in-process.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (`\w+`(?:, `\w+`)*) \| (\d{3}) \|/gm)]

  const documented = rows.flatMap(([, codes = '', status]) =>
    codes.split(', ').map((code) => [code.slice(1, -1), Number(status)]),
  )
  const actual = Object.keys(statuses).map((code) => {
    const { status, statusCode } = new LlmError(code as LlmErrorCode, 'It failed.')
    expect(statusCode).toBe(status)
    return [code, status]
  })

  expect(Object.fromEntries(documented)).toEqual(statuses)
  expect(Object.fromEntries(actual)).toEqual(statuses)
})

test('an error has the header retry-after if the time is known, in whole seconds', () => {
  const [soon, later, never] = [20, 1_001, undefined].map(
    (retryAfterMs) =>
      new LlmError('overloaded', 'Full.', retryAfterMs === undefined ? {} : { retryAfterMs }).headers,
  )

  expect(soon).toEqual({ 'retry-after': '1' })
  expect(later).toEqual({ 'retry-after': '2' })
  expect(never).toEqual({})
})

test('an invalid request contains the field and the kind of problem', () => {
  const error = invalidRequest('Too hot.', { param: 'temperature', issue: 'decimal_too_big' })

  expect(error.code).toBe('invalid_request')
  expect(error.details).toEqual({ param: 'temperature', issue: 'decimal_too_big' })
})

test('a missing model is named in the message, and the field in the details', () => {
  const error = modelNotFound('team/llama:8b')

  expect(error.code).toBe('not_found')
  expect(error.message).toContain('"team/llama:8b"')
  expect(error.details).toEqual({ param: 'model', model: 'team/llama:8b' })
})

test('the error for a long prompt contains the prompt tokens and the context size', () => {
  const error = contextLengthExceeded(5_000, 4_096)

  expect(error.code).toBe('context_length')
  expect(error.message).toContain('5000')
  expect(error.message).toContain('4096')
  expect(error.details).toEqual({ inputTokens: 5_000, contextSize: 4_096 })
})

test.each<[path: readonly PropertyKey[], text: string]>([
  [[], ''],
  [['messages', 0, 'role'], 'messages[0].role'],
  [['logitBias', 0, 1], 'logitBias[0][1]'],
  [['logit_bias', '5'], 'logit_bias.5'],
  [['a', 'b'.repeat(65)], `a.${'b'.repeat(64)}…`],
  [['a', '\ud83d'], 'a.\ufffd'],
])('the path %j is printed as %s', (path, text) => {
  expect(formatFieldPath(path)).toBe(text)
})
