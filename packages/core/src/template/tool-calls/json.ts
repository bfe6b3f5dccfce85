/** Incremental JSON parser that accepts common mistakes of models, such as unescaped line breaks. */
import type { ParserInput, ParseSteps } from '../input.ts'

/** Maximum nesting depth of arguments. Clients reject deeper nesting. */
export const maxArgumentDepth = 128

/** Automaton of JSON numbers: the next state by current state and character class. */
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

/** Checks, one character at a time, whether a text is the beginning of a JSON object. */
export class JsonObjectScanner {
  readonly #open: string[] = []
  #expected: 'value' | 'item or end' | 'key' | 'key or end' | 'colon' | 'comma or end' = 'value'
  #string: 'key' | 'value' | undefined
  #isEscaped = false
  #hexDigits = 0
  /** Characters of `true`, `false` or `null` that must follow. */
  #word = ''
  #number: string | undefined

  get isComplete(): boolean {
    return this.#open.length === 0 && this.#expected === 'comma or end'
  }

  /** Whether a character ends a member of the outermost object. */
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
   * Returns the character as valid JSON, or `undefined` if it cannot follow. Models forget to escape line
   * breaks and some backslashes in strings, so this method escapes them.
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

/** Emits a JSON object and returns whether it is complete. Stops before an invalid character. */
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

/**
 * Emits a JSON object that is encoded as a JSON string, and returns whether it is complete. The closing quote
 * may be missing. An empty string becomes `{}`.
 */
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

/**
 * Parses a string that must be one of the candidates. Returns `undefined` as soon as no candidate can match.
 */
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

/**
 * Skips the value of an object member, up to the comma or brace after it. Returns whether the value is valid.
 */
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

/** Characters of the escapes in JSON strings, except for `\\u`. */
export const jsonEscapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Returns the next character of a string, decoded, and its encoded length. Takes nothing. Returns `undefined`
 * at the closing quote, at an invalid escape and at the end of the text.
 */
function* peekStringCharacter(
  input: ParserInput,
): ParseSteps<readonly [character: string, length: number] | undefined> {
  const character = yield* input.peek()
  if (character === '' || character === '"') return undefined
  if (character !== '\\') return [character, 1]
  const code = yield* input.peek(1)
  if (code !== 'u') return code in jsonEscapes ? [jsonEscapes[code] as string, 2] : undefined
  let digits = ''
  while (digits.length < 4) {
    const digit = yield* input.peek(2 + digits.length)
    if (!/[0-9a-fA-F]/.test(digit)) return undefined
    digits += digit
  }
  return [String.fromCharCode(Number.parseInt(digits, 16)), 6]
}

/**
 * Escapes text for a JSON string. Keeps unpaired surrogates, because the next chunk can contain the other
 * half.
 */
export const escapeJson = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes these.
  text.replace(/["\\\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))

/** Whether a word is a number, a boolean or null in JSON. */
export const isJsonScalar = (word: string): boolean =>
  /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/.test(word)
