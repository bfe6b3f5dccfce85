/**
 * Converts a Lark grammar to a regular expression that matches the same texts. Possible if no rule contains itself,
 * such as in the grammar of patches that Codex sends.
 */
import { type LarkExpression, type LarkRules, parseLark } from './parse.ts'
import { LarkError } from './tokens.ts'

/** Length of the regular expression, in characters. The engine compiles no longer one. */
const maxLength = 4_000

/** Returns the source of the expression, without anchors. Throws a `LarkError`. */
export function larkToPattern(source: string): string {
  const rules = parseLark(source)
  if (!rules.has('start')) throw new LarkError("it has no rule 'start'")
  return new Converter(rules).convertRule('start')
}

class Converter {
  readonly #rules: LarkRules
  readonly #patterns = new Map<string, string>()
  /** Names of the rules that are being converted. */
  readonly #open = new Set<string>()

  constructor(rules: LarkRules) {
    this.#rules = rules
  }

  convertRule(name: string): string {
    const known = this.#patterns.get(name) ?? commonTerminals[name]
    if (known !== undefined) return known
    const rule = this.#rules.get(name)
    if (!rule) throw new LarkError(`it does not define '${name}'`)
    if (this.#open.has(name))
      throw new LarkError(`the rule '${name}' contains itself, which is not supported`)
    this.#open.add(name)
    const pattern = this.#convert(rule)
    this.#open.delete(name)
    if (pattern.length > maxLength) throw new LarkError('its rules are too long when each is written out')
    this.#patterns.set(name, pattern)
    return pattern
  }

  #convert(expression: LarkExpression): string {
    switch (expression.type) {
      case 'choice':
        return `(?:${expression.items.map((item) => this.#convert(item)).join('|')})`
      case 'sequence':
        return expression.items.map((item) => this.#convert(item)).join('')
      case 'repeat':
        return `(?:${this.#convert(expression.item)})${expression.quantifier}`
      case 'name':
        return this.convertRule(expression.text)
      case 'range':
        return `[${[expression.from, expression.to].map((text) => escapePattern(readString(text))).join('-')}]`
      case 'string':
        return convertString(expression.text)
      case 'regexp':
        return convertRegExp(expression)
    }
  }
}

function convertString(text: string): string {
  const isInsensitive = text.endsWith('i')
  return [...readString(isInsensitive ? text.slice(0, -1) : text)]
    .map((character) => {
      const [lower, upper] = [character.toLowerCase(), character.toUpperCase()]
      return isInsensitive && lower !== upper ? `[${lower}${upper}]` : escapePattern(character)
    })
    .join('')
}

/** Reads a string with its quotes. Its escapes are those of JSON, and `\x` with two digits. */
function readString(text: string): string {
  try {
    return JSON.parse(text.replaceAll(/\\x([0-9a-fA-F]{2})/g, '\\u00$1').replaceAll("\\'", "'")) as string
  } catch {
    throw new LarkError(`the string ${text.slice(0, 40)} has an unknown escape`)
  }
}

function convertRegExp({ text, line }: { readonly text: string; readonly line: number }): string {
  const end = text.lastIndexOf('/')
  if (!/^u?$/.test(text.slice(end + 1)))
    throw new LarkError(`the regular expression in line ${line} has flags, which are not supported`)
  return `(?:${text.slice(1, end).replaceAll('\\/', '/')})`
}

const escapePattern = (text: string): string =>
  text
    .replaceAll(/[\\^$.*+?()[\]{}|/-]/g, (character) => (character === '-' ? '\\x2d' : `\\${character}`))
    .replaceAll('\n', '\\n')

/** Terminals of Lark's module `common`. */
const commonTerminals: Readonly<Record<string, string>> = {
  'common.DIGIT': '[0-9]',
  'common.HEXDIGIT': '[0-9a-fA-F]',
  'common.INT': '[0-9]+',
  'common.SIGNED_INT': '[+\\x2d]?[0-9]+',
  'common.DECIMAL': '(?:[0-9]+\\.[0-9]*|\\.[0-9]+)',
  'common.LCASE_LETTER': '[a-z]',
  'common.UCASE_LETTER': '[A-Z]',
  'common.LETTER': '[a-zA-Z]',
  'common.WORD': '[a-zA-Z]+',
  'common.CNAME': '[_a-zA-Z][_a-zA-Z0-9]*',
  'common.ESCAPED_STRING': '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  'common.WS_INLINE': '[ \\t]+',
  'common.WS': '[ \\t\\f\\r\\n]+',
  'common.CR': '\\r',
  'common.LF': '\\n',
  'common.NEWLINE': '(?:\\r?\\n)+',
}
