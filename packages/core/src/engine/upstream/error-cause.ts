/**
 * What the log of the app may have of an error of an upstream server. The texts of a server may repeat a prompt or contain a
 * secret, so only facts about them are kept.
 */
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'

/** An error of a server: a response with another status than 200, or an error within a response. */
export interface ReportedError {
  readonly status?: number | undefined
  readonly contentType?: string | undefined
  /** The body, or its beginning. */
  readonly text: string
}

/** Characters of a body that are read. */
export const maxTextLength = 2_000

/** Describes the error by status, content type, length, and the fields `type` and `code` if they are short identifiers. */
export function toCause({ status, contentType, text }: ReportedError): Error {
  const what = status === undefined ? 'sent an error' : `answered with status ${status}`
  const type = contentType?.split(';')[0]?.trim()
  const length = text.length < maxTextLength ? text.length : `${maxTextLength} or more`
  const facts = [
    ...(type && /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(type) ? [type] : []),
    `${length} characters`,
    ...identifiersIn(tryParseJson(text)),
  ]
  return new Error(`The upstream server ${what} (${facts.join(', ')}).`)
}

/** OpenAI and Anthropic have the fields in an object `error`, older versions of vLLM at the top. */
function identifiersIn(body: unknown): readonly string[] {
  const error = isRecord(body) && isRecord(body.error) ? body.error : body
  if (!isRecord(error)) return []
  return (['type', 'code'] as const).flatMap((name) => {
    const value = error[name]
    const isIdentifier =
      Number.isSafeInteger(value) || (typeof value === 'string' && /^[a-z0-9_.-]{1,64}$/i.test(value))
    return isIdentifier ? [`${name} ${value}`] : []
  })
}
