/** Reads API keys from request headers. */
import { LlmError } from '../errors.ts'
import type { HttpRequest } from './message.ts'

/**
 * Reads the API key from `x-api-key` or `authorization: Bearer`. Throws an `LlmError` `authentication` if
 * these headers contain different keys.
 */
export function credentialOf({ header }: Pick<HttpRequest, 'header'>): string | undefined {
  const [, bearer] = /^bearer +(\S+) *$/i.exec(header('authorization') ?? '') ?? []
  const key = header('x-api-key') || undefined
  if (bearer !== undefined && key !== undefined && bearer !== key)
    throw new LlmError('authentication', 'The headers x-api-key and authorization contain different keys.')
  return bearer ?? key
}

/** Reads the API key like `credentialOf`. Throws an `LlmError` `authentication` without a key. */
export function expectCredential(request: Pick<HttpRequest, 'header'>): string {
  const key = credentialOf(request)
  if (key !== undefined) return key
  throw new LlmError(
    'authentication',
    'API key required. Send it as `x-api-key`, or as `authorization: Bearer`.',
  )
}
