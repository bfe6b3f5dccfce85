/** JSON as models write it, read character by character. */
import type { ParserInput, ParseSteps } from '../input.ts'

/** Clients reject arguments nested more deeply. */
export const maxArgumentDepth = 128

/** Where a number stands, and where each kind of character leads from there. */
const numberTransitions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '-': { 0: '0', 9: '9' },
  0: { '.': '.', e: 'e' },
  9: { 0: '9', 9: '9', '.': '.', e: 'e' },
  '.': { 0: '.9', 9: '.9' },
  '.9': { 0: '.9', 9: '.9', e: 'e' },
  e: { 0: 'e9', 9: 'e9', '-': 'e-', '+': 'e-' },
  'e-': { 0: 'e9', 9: 'e9' },
  e9: { 0: 'e9', 9: 'e9' },
}
const finalNumberStates: ReadonlySet<string> = new Set(['0', '9', '.9', 'e9'])
const classifyCharacter = (character: string): string =>
  character >= '1' && character <= '9' ? '9' : character === 'E' ? 'e' : character

const literalRests: Readonly<Record<string, string>> = { t: 'rue', f: 'alse', n: 'ull' }
const blank = ' \t\r\n'

/** Says of each character whether it goes on with an object. */
export class JsonObjectScanner {
  readonly #open: string[] = []
  #expected: 'value' | 'item or end' | 'key' | 'key or end' | 'colon' | 'comma or end' = 'value'
  #string: 'key' | 'value' | undefined
  #isEscaped = false
  #hexDigits = 0
  /** Of `true`, `false` or `null`, what is to come. */
  #word = ''
  #number: string | undefined

  get isComplete(): boolean {
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
      (this.#number === undefined || finalNumberStates.has(this.#number))
    )
  }

  /**
   * The character as it may stand there; undefined where none of its kind may. What models forget to escape
   * is escaped: line breaks, and backslashes that escape nothing.
   */
  push(character: string): string | undefined {
    if (this.#string) return this.#pushInString(character)
    if (this.#word !== '') {
      if (character !== this.#word[0]) return undefined
      this.#word = this.#word.slice(1)
      return character
    }
    if (this.#number !== undefined) {
      const next = numberTransitions[this.#number]?.[classifyCharacter(character)]
      if (next === undefined && !finalNumberStates.has(this.#number)) return undefined
      this.#number = next
      if (next !== undefined) return character
    }
    return blank.includes(character) || this.#pushStructure(character) ? character : undefined
  }

  #pushStructure(character: string): boolean {
    const inside = this.#open.at(-1)
    switch (this.#expected) {
      case 'value':
        return this.#begin(character)
      case 'item or end':
        return character === ']' ? this.#close() : this.#begin(character)
      case 'key or end':
        return character === '}' ? this.#close() : this.#beginKey(character)
      case 'key':
        return this.#beginKey(character)
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
      return this.#open.push(character) <= maxArgumentDepth && (this.#open.length > 1 || character === '{')
    }
    this.#expected = 'comma or end'
    if (this.#open.length === 0) return false
    if (character === '"') this.#string = 'value'
    else if (character in literalRests) this.#word = literalRests[character] as string
    else if (/[-0-9]/.test(character)) this.#number = classifyCharacter(character)
    else return false
    return true
  }

  #beginKey(character: string): boolean {
    this.#string = 'key'
    return character === '"'
  }

  #close(): boolean {
    this.#open.pop()
    this.#expected = 'comma or end'
    return true
  }

  #pushInString(character: string): string | undefined {
    if (this.#hexDigits > 0) {
      this.#hexDigits--
      return /[0-9a-fA-F]/.test(character) ? character : undefined
    }
    if (this.#isEscaped) {
      this.#isEscaped = false
      if (character === 'u') this.#hexDigits = 4
      return '"\\/bfnrtu'.includes(character) ? character : `\\${escapeJson(character)}`
    }
    if (character === '\\') this.#isEscaped = true
    else if (character === '"') {
      this.#expected = this.#string === 'key' ? 'colon' : 'comma or end'
      this.#string = undefined
    } else return escapeJson(character)
    return character
  }
}

/** Copies an object to `give`, and tells whether it was whole; what goes on with none is not taken. */
export function* copyObject(input: ParserInput, emit: (json: string) => void): ParseSteps<boolean> {
  const json = new JsonObjectScanner()
  while (!json.isComplete) {
    const character = yield* input.peek()
    const valid = character === '' ? undefined : json.push(character)
    if (valid === undefined) return false
    input.skip()
    emit(valid)
  }
  return true
}

/** The same for an object that is given as a string, the end of which may be missing; an empty one has no members. */
export function* copyQuotedObject(input: ParserInput, emit: (json: string) => void): ParseSteps<boolean> {
  if (!(yield* input.tryTake('"'))) return false
  const json = new JsonObjectScanner()
  let isEmpty = true
  for (;;) {
    const next = yield* peekStringCharacter(input)
    if (!next) break
    const [character, length] = next
    const isAround = blank.includes(character) && (isEmpty || json.isComplete)
    if (!isAround) {
      if (json.isComplete) break
      const valid = json.push(character)
      if (valid === undefined) return false
      isEmpty = false
      emit(valid)
    }
    input.skip(length)
  }
  const isClosed = yield* input.tryTake('"')
  if (isEmpty && isClosed) emit('{}')
  return json.isComplete || (isEmpty && isClosed)
}

/** A string that is one of these, without its quotes; undefined as soon as it cannot be. */
export function* parseOneOfStrings(
  input: ParserInput,
  candidates: readonly string[],
): ParseSteps<string | undefined> {
  if (!(yield* input.tryTake('"'))) return undefined
  let text = ''
  for (;;) {
    const next = yield* peekStringCharacter(input)
    if (!next) break
    const [character, length] = next
    text += character
    if (!candidates.some((candidate) => candidate.startsWith(text))) return undefined
    input.skip(length)
  }
  return candidates.includes(text) && (yield* input.tryTake('"')) ? text : undefined
}

/** Takes any value, up to the comma or the brace behind it. */
export function* skipValue(input: ParserInput): ParseSteps<boolean> {
  const json = new JsonObjectScanner()
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
function* peekStringCharacter(
  input: ParserInput,
): ParseSteps<readonly [character: string, length: number] | undefined> {
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
export const escapeJson = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes these.
  text.replace(/["\\\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))
