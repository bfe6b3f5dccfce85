/** JSON as models write it, read character by character. */
import type { Input, Steps } from '../input.ts'

/** Clients refuse what is deeper. */
const maxDepth = 128

/** Where a number stands, and where each kind of character leads from there. */
const numbers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '-': { 0: '0', 9: '9' },
  0: { '.': '.', e: 'e' },
  9: { 0: '9', 9: '9', '.': '.', e: 'e' },
  '.': { 0: '.9', 9: '.9' },
  '.9': { 0: '.9', 9: '.9', e: 'e' },
  e: { 0: 'e9', 9: 'e9', '-': 'e-', '+': 'e-' },
  'e-': { 0: 'e9', 9: 'e9' },
  e9: { 0: 'e9', 9: 'e9' },
}
const canEnd: ReadonlySet<string> = new Set(['0', '9', '.9', 'e9'])
const kindOf = (character: string): string =>
  character >= '1' && character <= '9' ? '9' : character === 'E' ? 'e' : character

const words: Readonly<Record<string, string>> = { t: 'rue', f: 'alse', n: 'ull' }
const blank = ' \t\r\n'

/** Says of each character whether it goes on with an object. */
export class JsonObject {
  readonly #open: string[] = []
  #expected: 'value' | 'item or end' | 'key' | 'key or end' | 'colon' | 'comma or end' = 'value'
  #string: 'key' | 'value' | undefined
  #escaped = false
  #hexDigits = 0
  /** Of `true`, `false` or `null`, what is to come. */
  #word = ''
  #number: string | undefined

  get isWhole(): boolean {
    return this.#open.length === 0 && this.#expected === 'comma or end'
  }

  /** Whether it stands behind a member of the outermost object. */
  endsMember(character: string): boolean {
    return (
      (character === ',' || character === '}') &&
      this.#open.length === 1 &&
      this.#expected === 'comma or end' &&
      !this.#string &&
      this.#word === '' &&
      (this.#number === undefined || canEnd.has(this.#number))
    )
  }

  /**
   * The character as it may stand there; undefined where none of its kind may. What models forget to escape
   * is escaped: line breaks, and backslashes that escape nothing.
   */
  push(character: string): string | undefined {
    if (this.#string) return this.#inString(character)
    if (this.#word !== '') {
      if (character !== this.#word[0]) return undefined
      this.#word = this.#word.slice(1)
      return character
    }
    if (this.#number !== undefined) {
      const next = numbers[this.#number]?.[kindOf(character)]
      if (next === undefined && !canEnd.has(this.#number)) return undefined
      this.#number = next
      if (next !== undefined) return character
    }
    return blank.includes(character) || this.#structure(character) ? character : undefined
  }

  #structure(character: string): boolean {
    const inside = this.#open.at(-1)
    switch (this.#expected) {
      case 'value':
        return this.#begin(character)
      case 'item or end':
        return character === ']' ? this.#close() : this.#begin(character)
      case 'key or end':
        return character === '}' ? this.#close() : this.#key(character)
      case 'key':
        return this.#key(character)
      case 'colon':
        this.#expected = 'value'
        return character === ':'
      case 'comma or end':
        if (character === ',') {
          this.#expected = inside === '{' ? 'key' : 'value'
          return inside !== undefined
        }
        return character === (inside === '{' ? '}' : ']') && inside !== undefined && this.#close()
    }
  }

  #begin(character: string): boolean {
    if (character === '{' || character === '[') {
      this.#expected = character === '{' ? 'key or end' : 'item or end'
      return this.#open.push(character) <= maxDepth && (this.#open.length > 1 || character === '{')
    }
    this.#expected = 'comma or end'
    if (this.#open.length === 0) return false
    if (character === '"') this.#string = 'value'
    else if (character in words) this.#word = words[character] as string
    else if (/[-0-9]/.test(character)) this.#number = kindOf(character)
    else return false
    return true
  }

  #key(character: string): boolean {
    this.#string = 'key'
    return character === '"'
  }

  #close(): boolean {
    this.#open.pop()
    this.#expected = 'comma or end'
    return true
  }

  #inString(character: string): string | undefined {
    if (this.#hexDigits > 0) {
      this.#hexDigits--
      return /[0-9a-fA-F]/.test(character) ? character : undefined
    }
    if (this.#escaped) {
      this.#escaped = false
      if (character === 'u') this.#hexDigits = 4
      return '"\\/bfnrtu'.includes(character) ? character : `\\${escaped(character)}`
    }
    if (character === '\\') this.#escaped = true
    else if (character === '"') {
      this.#expected = this.#string === 'key' ? 'colon' : 'comma or end'
      this.#string = undefined
    } else return escaped(character)
    return character
  }
}

/** Copies an object to `give`, and tells whether it was whole; what goes on with none is not taken. */
export function* copyObject(input: Input, give: (json: string) => void): Steps<boolean> {
  const json = new JsonObject()
  while (!json.isWhole) {
    const character = yield* input.peek()
    const valid = character === '' ? undefined : json.push(character)
    if (valid === undefined) return false
    input.skip()
    give(valid)
  }
  return true
}

/** The same for an object that is given as a string, the end of which may be missing; an empty one has no members. */
export function* copyQuotedObject(input: Input, give: (json: string) => void): Steps<boolean> {
  if (!(yield* input.takes('"'))) return false
  const json = new JsonObject()
  let isEmpty = true
  for (;;) {
    const next = yield* stringCharacter(input)
    if (!next) break
    const [character, length] = next
    const isAround = blank.includes(character) && (isEmpty || json.isWhole)
    if (!isAround) {
      if (json.isWhole) break
      const valid = json.push(character)
      if (valid === undefined) return false
      isEmpty = false
      give(valid)
    }
    input.skip(length)
  }
  const isClosed = yield* input.takes('"')
  if (isEmpty && isClosed) give('{}')
  return json.isWhole || (isEmpty && isClosed)
}

/** A string that is one of these, without its quotes; undefined as soon as it cannot be. */
export function* stringAmong(input: Input, candidates: readonly string[]): Steps<string | undefined> {
  if (!(yield* input.takes('"'))) return undefined
  let read = ''
  for (;;) {
    const next = yield* stringCharacter(input)
    if (!next) break
    const [character, length] = next
    read += character
    if (!candidates.some((one) => one.startsWith(read))) return undefined
    input.skip(length)
  }
  return candidates.includes(read) && (yield* input.takes('"')) ? read : undefined
}

/** Takes any value, up to the comma or the brace behind it. */
export function* skipValue(input: Input): Steps<boolean> {
  const json = new JsonObject()
  for (const character of '{"":') json.push(character)
  for (;;) {
    const character = yield* input.peek()
    if (json.endsMember(character)) return true
    if (character === '' || json.push(character) === undefined) return false
    input.skip()
  }
}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/** One character of a string and how long it is as it is written, not taken; undefined at the closing quote, and at what is none. */
function* stringCharacter(input: Input): Steps<readonly [character: string, length: number] | undefined> {
  const character = yield* input.peek()
  if (character === '' || character === '"') return undefined
  if (character !== '\\') return [character, 1]
  const code = yield* input.peek(1)
  if (code !== 'u') return code in escapes ? [escapes[code] as string, 2] : undefined
  let digits = ''
  while (digits.length < 4) {
    const digit = yield* input.peek(2 + digits.length)
    if (!/[0-9a-fA-F]/.test(digit)) return undefined
    digits += digit
  }
  return [String.fromCharCode(Number.parseInt(digits, 16)), 6]
}

/** As it may stand in a JSON string. Halves of characters stay as they are: the other half may come with the next piece. */
export const escaped = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes these.
  text.replace(/["\\\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))
