/** Go's `fmt` functions: `print`, `println`, `printf`. */
import { formatFloat, toText, withExponent } from './print.ts'
import { type GoValue, isList, typeOf } from './values.ts'

/** Writes a space between two operands if neither is a string. */
export const sprint = (values: readonly GoValue[]): string =>
  values
    .map((value, index) => {
      const isApart = index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string'
      return (isApart ? ' ' : '') + toText(value)
    })
    .join('')

export const sprintln = (values: readonly GoValue[]): string => `${values.map(toText).join(' ')}\n`

/** Maximum width of padded text, in characters, so that a template cannot exhaust memory. */
const maxWidth = 10_000

export function sprintf(format: string, values: readonly GoValue[]): string {
  let used = 0
  /** Resolves a width or a precision. `*` takes the number from the arguments. */
  const resolveNumber = (written: string | undefined): number | undefined => {
    if (written !== '*') return written === undefined ? undefined : Number(written)
    const value = values[used++]
    return typeof value === 'bigint' ? Number(value) : 0
  }
  const text = format.replace(
    /%([-+# 0]*)(\*|\d{0,9})(?:\.(\*|\d{0,9}))?(.?)/gsu,
    (_, flags: string, written: string, fraction: string | undefined, verb: string) => {
      if (verb === '') return '%!(NOVERB)'
      const width = resolveNumber(written) ?? 0
      const digits = resolveNumber(fraction)
      if (verb === '%') return '%'
      if (used >= values.length) return `%!${verb}(MISSING)`
      const value = values[used++]
      const precision = digits === undefined ? undefined : Math.max(0, Math.min(digits, 100))
      return pad(formatValue(value, verb, flags, precision), width < 0 ? '-' : flags, Math.abs(width), value)
    },
  )
  const extra = values.slice(used).map((value) => `${typeOf(value)}=${toText(value)}`)
  return extra.length > 0 ? `${text}%!(EXTRA ${extra.join(', ')})` : text
}

function pad(text: string, flags: string, width: number, value: GoValue): string {
  const length = Math.min(width, maxWidth)
  if (flags.includes('-')) return text.padEnd(length)
  const isNumber = typeof value === 'bigint' || typeof value === 'number'
  if (!flags.includes('0') || !isNumber) return text.padStart(length)
  const [sign = ''] = /^[+-]?/.exec(text) ?? []
  return sign + text.slice(sign.length).padStart(length - sign.length, '0')
}

function formatValue(value: GoValue, verb: string, flags: string, precision: number | undefined): string {
  if (isList(value) && verb !== 'v' && verb !== 'T')
    return `[${value.map((item) => formatValue(item, verb, flags, precision)).join(' ')}]`
  const plus = flags.includes('+') ? '+' : ''
  switch (verb) {
    case 'v':
      return typeof value === 'number' && precision !== undefined
        ? formatGeneral(value, precision)
        : toText(value)
    case 'T':
      return typeOf(value)
    case 't':
      if (typeof value === 'boolean') return String(value)
      break
    case 's':
      if (typeof value === 'string')
        return precision === undefined ? value : [...value].slice(0, precision).join('')
      if (typeof value === 'object' && value !== null) return toText(value)
      break
    case 'q':
      if (typeof value === 'string') return JSON.stringify(value)
      break
    case 'd':
      if (typeof value === 'bigint') return (value >= 0n ? plus : '') + value
      break
    case 'c':
      if (typeof value === 'bigint' && value >= 0n && value <= 0x10ffffn)
        return String.fromCodePoint(Number(value))
      break
    case 'b':
    case 'o':
    case 'x':
    case 'X': {
      const digits =
        typeof value === 'bigint'
          ? value.toString({ b: 2, o: 8, x: 16, X: 16 }[verb])
          : typeof value === 'string' && verb.toLowerCase() === 'x'
            ? Buffer.from(value).toString('hex')
            : undefined
      if (digits !== undefined) return verb === 'X' ? digits.toUpperCase() : digits
      break
    }
    case 'e':
    case 'f':
    case 'F':
    case 'g':
      if (typeof value === 'number') return (value >= 0 ? plus : '') + formatFloatVerb(value, verb, precision)
  }
  const printed = value === undefined || value === null ? '<nil>' : `${typeOf(value)}=${toText(value)}`
  return `%!${verb}(${printed})`
}

function formatFloatVerb(value: number, verb: 'e' | 'f' | 'F' | 'g', precision: number | undefined): string {
  if (!Number.isFinite(value)) return formatFloat(value)
  if (verb === 'e') return withExponent(value.toExponential(precision ?? 6))
  if (verb === 'g') return precision === undefined ? formatFloat(value) : formatGeneral(value, precision)
  return formatFixed(value, precision ?? 6)
}

/** Like `toFixed`, but without an exponent for values of 1e21 and more. */
const formatFixed = (value: number, precision: number): string =>
  Math.abs(value) < 1e21
    ? value.toFixed(precision)
    : BigInt(value).toString() + (precision > 0 ? `.${'0'.repeat(precision)}` : '')

function formatGeneral(value: number, precision: number): string {
  const digits = Math.max(1, precision)
  const [mantissa = '', exponent = ''] = value.toExponential(digits - 1).split('e')
  const size = Number(exponent)
  if (size < -4 || size >= digits)
    return withExponent(`${mantissa.replace(/\.?0+$/, '')}e${size < 0 ? '-' : '+'}${Math.abs(size)}`)
  return String(Number(value.toPrecision(digits)))
}
