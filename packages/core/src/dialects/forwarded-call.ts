/** Reads the header by which another app with Modelmount forwards a call. */
import type { Scope } from '../accounts/auth/caller.ts'
import type { ForwardedCall } from '../calls/call.ts'
import { invalidRequest } from '../errors.ts'
import type { HttpRequest } from '../http/message.ts'

/** Its value is a query string, which can contain any tenant: `tenant=team%201&weight=2&background=true`. */
const headerName = 'x-modelmount-forwarded'

const maxWeight = 1_000
const maxContextSize = 2 ** 24

/**
 * Returns undefined for a request without the header. Throws an `LlmError` `invalid_request` for an invalid header.
 *
 * @param expectScope throws if the caller of the request lacks the scope
 */
export function readForwardedCall(
  { header }: Pick<HttpRequest, 'header'>,
  expectScope: (scope: Scope) => void,
): ForwardedCall | undefined {
  const value = header(headerName)
  if (value === undefined) return undefined
  expectScope('fleet')
  const fields = new URLSearchParams(value)
  const tenant = fields.get('tenant')
  if (tenant === null) throw invalid('tenant', "a name, which may be ''")
  return {
    tenant,
    weight: readNumber(fields, 'weight', { max: maxWeight, isInteger: false }),
    background: readFlag(fields, 'background'),
    hasDefaults: readFlag(fields, 'defaults'),
    requestedContextSize: readNumber(fields, 'contextSize', { max: maxContextSize, isInteger: true }),
  }
}

function readNumber(
  fields: URLSearchParams,
  name: string,
  { max, isInteger }: { readonly max: number; readonly isInteger: boolean },
): number | undefined {
  const value = fields.get(name)
  if (value === null) return undefined
  const number = value.trim() === '' ? Number.NaN : Number(value)
  if (number > 0 && number <= max && (!isInteger || Number.isInteger(number))) return number
  throw invalid(name, `${isInteger ? 'a whole number from 1 to' : 'a number above 0, at most'} ${max}`)
}

function readFlag(fields: URLSearchParams, name: string): boolean {
  const value = fields.get(name) ?? 'false'
  if (value === 'true' || value === 'false') return value === 'true'
  throw invalid(name, 'true or false')
}

const invalid = (field: string, expected: string): Error =>
  invalidRequest(`Header ${headerName}: expected \`${field}\` to be ${expected}.`)
