/** API keys in request headers. */
import { LlmError } from '../errors.ts'
import type { HttpRequest } from './message.ts'

/** Reads the API key from `x-api-key` or `authorization: Bearer`. Throws `authentication` if both are sent and differ. */
export function credentialOf({ header }: Pick<HttpRequest, 'header'>): string | undefined {
  const [, bearer] = /^bearer +(\S+) *$/i.exec(header('authorization') ?? '') ?? []
  const key = header('x-api-key') || undefined
  if (bearer !== undefined && key !== undefined && bearer !== key)
    throw new LlmError('authentication', 'The headers x-api-key and authorization name different keys.')
  return bearer ?? key
}

/** Like `credentialOf`, but throws `authentication` also if no key is sent. */
export function expectCredential(request: Pick<HttpRequest, 'header'>): string {
  const key = credentialOf(request)
  if (key !== undefined) return key
  throw new LlmError(
    'authentication',
    'No API key is given. Send it as `x-api-key`, or as `authorization: Bearer`.',
  )
}
