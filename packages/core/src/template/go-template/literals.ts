/** Parses Go's constant literals. */
const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
}

/** Parses a quoted or raw string. Returns `undefined` if an escape is invalid. */
export function parseString(literal: string): string | undefined {
  const inner = literal.slice(1, -1)
  // Go drops carriage returns from raw strings.
  if (literal.startsWith('`')) return inner.replaceAll('\r', '')
  let isInvalid = false
  // Several byte escapes in a row can encode one UTF-8 character.
  const text = inner.replace(
    /(?:\\(?:x[\da-fA-F]{2}|[0-7]{3}))+|\\(?:u[\da-fA-F]{4}|U[\da-fA-F]{8}|.)/gs,
    (spelled) => {
      const kind = spelled[1] as string
      if (/^\\(?:x[\da-fA-F]|[0-7]{3})/.test(spelled)) return decodeBytes(spelled)
      if ((kind === 'u' || kind === 'U') && spelled.length > 2) {
        const point = Number.parseInt(spelled.slice(2), 16)
        if (point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)) return String.fromCodePoint(point)
      }
      const character = kind === "'" ? undefined : escapes[kind]
      isInvalid ||= character === undefined
      return character ?? ''
    },
  )
  return isInvalid ? undefined : text
}

const decodeBytes = (spelled: string): string =>
  new TextDecoder().decode(
    Uint8Array.from(spelled.split('\\').slice(1), (byte) =>
      Number.parseInt(byte.replace('x', ''), byte.startsWith('x') ? 16 : 8),
    ),
  )

/** Parses a rune literal to its code point. */
export function parseCharacter(literal: string): bigint | undefined {
  const inner = literal.slice(1, -1)
  const text = inner === "\\'" ? "'" : inner === '"' ? '"' : parseString(`"${inner}"`)
  return text !== undefined && [...text].length === 1 ? BigInt(text.codePointAt(0) as number) : undefined
}

const integerPattern = /^[+-]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|0[0-7_]*|[1-9][\d_]*)$/
const floatPattern = /^[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

export function parseNumber(literal: string): bigint | number | undefined {
  const text = literal.replaceAll('_', '')
  if (integerPattern.test(literal)) {
    const digits = text.replace(/^[+-]/, '').replace(/^0(?=[0-7])/, '0o')
    const value = text.startsWith('-') ? -BigInt(digits) : BigInt(digits)
    return BigInt.asIntN(64, value) === value ? value : undefined
  }
  return floatPattern.test(literal) ? Number(text) : undefined
}
