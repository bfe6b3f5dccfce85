import { expect, test } from 'vitest'
import { LlmError } from '../../errors.ts'
import { fromWireError, toWireError } from './wire-error.ts'

test('keeps code, message and details of an error', () => {
  const error = new LlmError('context_length', 'Too long.', { inputTokens: 9, contextSize: 8 })

  const received = fromWireError(JSON.parse(JSON.stringify(toWireError(error))))

  expect(received).toBeInstanceOf(LlmError)
  expect(received.code).toBe('context_length')
  expect(received.message).toBe('Too long.')
  expect(received.details).toEqual({ inputTokens: 9, contextSize: 8 })
})

test('keeps the cause for the log, apart from what clients see', () => {
  const unknown = fromWireError(toWireError(new Error('/home/me/secret.gguf is broken')))
  const known = fromWireError(
    toWireError(new LlmError('upstream', 'The model could not be loaded.', {}, { cause: 'secret' })),
  )

  expect(unknown).toMatchObject({ code: 'internal', message: expect.not.stringContaining('secret') })
  expect(String(unknown.cause)).toContain('/home/me/secret.gguf is broken')
  expect(known).toMatchObject({ code: 'upstream', message: 'The model could not be loaded.' })
  expect(known.cause).toEqual(new Error('secret'))
})
