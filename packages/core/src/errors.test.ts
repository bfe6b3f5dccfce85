import { expect, test } from 'vitest'
import { contextLengthExceeded, formatFieldPath, invalidRequest, LlmError, modelNotFound } from './errors.ts'

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
