/**
 * Patterns for the supported values of `format`. Most accept all texts of their RFC, and some accept fewer.
 */
import { type Automaton, anyText } from '../automata/automaton.ts'
import { compileFullMatch } from '../automata/pattern.ts'

/** Date of RFC 3339. Respects leap years and the number of days in each month. */
const date = (() => {
  const leapYear = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)'
  const thirty = '(?:0[13-9]|1[0-2])-(?:29|30)'
  const days = `(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|${thirty}|(?:0[13578]|1[02])-31`
  return `(?:[0-9]{4}-(?:${days})|${leapYear}-02-29)`
})()
/** Time of RFC 3339 without leap seconds, because their validity depends on the offset. */
const time =
  '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,15})?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'
/** Duration of RFC 3339, appendix A. */
const duration = (() => {
  const clock = 'T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)'
  const days = '[0-9]{1,9}D'
  const months = `[0-9]{1,9}M(?:${days})?`
  return `P(?:(?:${days}|${months}|[0-9]{1,9}Y(?:${months})?)(?:${clock})?|${clock}|[0-9]{1,9}W)`
})()

const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const ipv4 = `(?:${byte}\\.){3}${byte}`
/** IPv6 address of RFC 4291, section 2.2. */
const ipv6 = (() => {
  const group = '[0-9a-fA-F]{1,4}'
  const tail = `(?:${group}:${group}|${ipv4})`
  const shortened = Array.from({ length: 7 }, (_, before) => {
    const left = before === 0 ? '' : `${group}(?::${group}){${before - 1}}`
    const room = 7 - before
    const right = [
      ...(room >= 1 ? [`(?:${group}(?::${group}){0,${room - 1}})`] : []),
      ...(room >= 2 ? [`(?:(?:${group}:){0,${room - 2}}${ipv4})`] : []),
    ]
    return `${left}::(?:${right.join('|')})?`
  })
  return `(?:(?:${group}:){6}${tail}|${shortened.join('|')}|${group}(?::${group}){6}::)`
})()

/**
 * Host name of RFC 1123, limited to four labels of up to 31 letters and digits with single hyphens between
 * them. These limits imply the maximum lengths of the RFC: 63 characters per label and 253 per name.
 */
const label = '[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,30}'
const hostname = `${label}(?:\\.${label}){0,3}`
/**
 * Email address of RFC 5321 that the checks of zod 4 and ajv-formats accept, too. A local part has up to 32
 * characters, with single dots between them. The last label has only letters.
 */
const email = (() => {
  const local = "(?:[a-zA-Z0-9_'+-]\\.?){0,31}[a-zA-Z0-9_+-]"
  return `${local}@(?:${label}\\.){1,3}[a-zA-Z]{2,31}`
})()

/** Parts of a URI of RFC 3986. A host is a name or an IPv4 address. */
const percent = '%[0-9a-fA-F]{2}'
const path = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@/-]|${percent})`
const segment = `(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|${percent})`
const endOfUri = `(?:\\?(?:${path}|\\?)*)?(?:#(?:${path}|\\?)*)?`
const authority = `//(?:(?:[a-zA-Z0-9._~!$&'()*+,;=:-]|${percent})*@)?(?:[a-zA-Z0-9._~-]|${percent})+(?::[0-9]{0,5})?`
const uri = `[a-zA-Z][a-zA-Z0-9+.-]*:(?:${authority}(?:/${path}*)?|/(?:${segment}+(?:/${segment}*)*)?|${segment}${path}*)${endOfUri}`

const pointer = '(?:/(?:[^~/]|~[01])*)*'
const uuid = '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}'

const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  'date-time': `${date}[tT]${time}`,
  duration,
  uuid,
  ipv4,
  ipv6,
  hostname,
  email,
  uri,
  'json-pointer': pointer,
  'relative-json-pointer': `(?:0|[1-9][0-9]{0,9})(?:#|${pointer})`,
  byte: '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?',
}

/** Formats of OpenAPI that do not constrain strings. */
const unconstrainedFormats = new Set(['password', 'binary', 'int32', 'int64', 'float', 'double'])

export const isFormat = (name: string): boolean =>
  Object.hasOwn(patterns, name) || unconstrainedFormats.has(name)

export const buildFormatAutomaton = (name: string): Automaton =>
  unconstrainedFormats.has(name) ? anyText : compileFullMatch(patterns[name] as string)
