import { expect, test, vi } from 'vitest'
import { LlmError } from './errors.ts'
import { createErrorReporter } from './logger.ts'

function reported(...errors: LlmError[]) {
  const lines: [level: string, details: object, message: string][] = []
  const report = createErrorReporter({
    warn: (details, message) => lines.push(['warn', details, message]),
    error: (details, message) => lines.push(['error', details, message]),
  })
  for (const error of errors) report(error)
  return lines
}

test('each server failure is logged once as an error, with its cause', () => {
  const internal = LlmError.from(new Error('disk on fire'))
  const upstream = new LlmError('upstream', 'The model process has ended.')
  const another = new LlmError('upstream', 'The model process has ended.')

  expect(reported(internal, upstream, upstream, another)).toEqual([
    ['error', { err: internal }, internal.message],
    ['error', { err: upstream }, upstream.message],
    ['error', { err: another }, another.message],
  ])
  expect(internal.cause).toEqual(new Error('disk on fire'))
})

test('a setup mistake is logged once, as a warning', () => {
  const setup = new LlmError('invalid_request', 'Mount it before the body parser.', { setup: true })

  expect(reported(setup, setup, setup)).toEqual([['warn', { err: setup }, setup.message]])
})

test('an error of a request is logged with the id of the request', () => {
  const error = vi.fn()
  const upstream = new LlmError('upstream', 'The model process has ended.')

  createErrorReporter({ warn: vi.fn(), error })(upstream, { requestId: 'req_1' })

  expect(error.mock.calls).toEqual([[{ err: upstream, requestId: 'req_1' }, upstream.message]])
})

test('client errors are not logged', () => {
  expect(reported(new LlmError('invalid_request', 'no'), new LlmError('not_found', 'no'))).toEqual([])
})

test('without a logger nothing happens', () => {
  expect(() => createErrorReporter(undefined)(new LlmError('internal', 'quiet'))).not.toThrow()
})
