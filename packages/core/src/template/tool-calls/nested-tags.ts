/**
 * Parses arguments of MiniMax-M3, which are nested tags: a tag per member of an object, and `item` tags for the
 * elements of an array. A token precedes each tag, so values need no escapes.
 */
import type { ParserInput, ParseSteps } from '../input.ts'
import { escapeJson, maxArgumentDepth } from './json.ts'
import { findTypes, toJson } from './parameters.ts'

/** Token before each tag. */
export const namespace = ']<]minimax[>['

/** Converts tags to JSON. Every parsing method returns false if its text is invalid or incomplete. */
export class NestedTagParser {
  readonly #input: ParserInput
  readonly #emit: (json: string) => void

  constructor(input: ParserInput, emit: (json: string) => void) {
    this.#input = input
    this.#emit = emit
  }

  /** Parses the members of an object, and the closing tag of the object. */
  *parseObject(name: string, schema: object): ParseSteps<boolean> {
    return yield* this.#parseMembers(yield* this.#parseTag(), name, schema, 0)
  }

  /** @param first the first tag, or the closing tag of an empty object */
  *#parseMembers(
    first: string | undefined,
    name: string,
    schema: object,
    depth: number,
  ): ParseSteps<boolean> {
    let separator = ''
    this.#emit('{')
    for (let tag = first; tag !== `/${name}`; tag = yield* this.#parseTag()) {
      if (tag === undefined || tag.startsWith('/')) return false
      this.#emit(`${separator}"${escapeJson(tag)}":`)
      separator = ','
      if (!(yield* this.#parseValue(tag, schema, depth))) return false
    }
    this.#emit('}')
    return true
  }

  /** Parses the elements of an array after the opening tag of the first one. */
  *#parseElements(name: string, schema: object, depth: number): ParseSteps<boolean> {
    const { items } = schema as { readonly items?: unknown }
    let separator = '['
    for (let tag: string | undefined = 'item'; tag !== `/${name}`; tag = yield* this.#parseTag()) {
      if (tag !== 'item') return false
      this.#emit(separator)
      separator = ','
      if (!(yield* this.#parseValue('item', { properties: { item: items } }, depth))) return false
    }
    this.#emit(']')
    return true
  }

  /**
   * Parses the value of a tag, and its closing tag.
   * @param schema of the object that contains the tag
   */
  *#parseValue(name: string, schema: object, depth: number): ParseSteps<boolean> {
    if (depth === maxArgumentDepth) return false
    const types = findTypes(schema, name)
    const isString = types?.join() === 'string'
    const pieces: string[] = []
    if (isString) this.#emit('"')
    const add = (text: string): void => {
      if (isString) this.#emit(escapeJson(text))
      else pieces.push(text)
    }
    if ((yield* this.#input.takeUpTo([namespace], add)) === undefined) return false
    const tag = yield* this.#parseTag()
    const text = pieces.join('')
    if (tag === `/${name}`) {
      this.#emit(isString ? '"' : toJson(text, types))
      return true
    }
    if (tag === undefined || isString || text.trim() !== '') return false
    const inner = memberSchema(schema, name)
    return tag === 'item'
      ? yield* this.#parseElements(name, inner, depth + 1)
      : yield* this.#parseMembers(tag, name, inner, depth + 1)
  }

  /** Parses a tag. Returns its name, which begins with a slash if the tag is a closing tag. */
  *#parseTag(): ParseSteps<string | undefined> {
    const input = this.#input
    yield* input.skipBlanks()
    if (!(yield* input.tryTake(`${namespace}<`))) return undefined
    let name = ''
    if (
      (yield* input.takeUpTo(['>'], (text) => {
        name += text
      })) === undefined
    )
      return undefined
    input.skip()
    return name
  }
}

function memberSchema(schema: object, name: string): object {
  const { properties } = schema as { readonly properties?: Readonly<Record<string, unknown>> }
  const member = properties && Object.hasOwn(properties, name) ? properties[name] : undefined
  return typeof member === 'object' && member !== null ? member : {}
}
