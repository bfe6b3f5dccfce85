/**
 * Splits templates into text, and tokens between `{{` and `}}`. Modelled on `lex.go` of Go's
 * `text/template/parse`.
 */
import { errorAt } from './error.ts'

export type Token = { readonly at: number } & (
  | { readonly type: 'text'; readonly text: string }
  /** `{{`, `}}` and the end of the source. */
  | { readonly type: 'open' | 'close' | 'end' }
  | {
      readonly type: 'field' | 'variable' | 'word' | 'string' | 'number' | 'character' | 'mark'
      readonly text: string
      /** Whether white space precedes the token. */
      readonly isSpaced: boolean
    }
)

const blank = /[ \t\r\n]*/y
const patterns: readonly (readonly [Extract<Token, { isSpaced: boolean }>['type'], RegExp])[] = [
  ['string', /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  ['character', /'(?:[^'\\\n]|\\.)*'/y],
  ['number', /[+-]?\.?\d(?:[eEpP][+-]|[\w.])*/y],
  ['field', /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['mark', /:=|[.=()|,]/y],
]

/** Runs in linear time. Throws `GoTemplateError`. */
export function lex(source: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  /** Whether the previous action ended with a trim marker. */
  let isTrimming = false
  for (;;) {
    const open = source.indexOf('{{', at)
    const text = source.slice(at, open === -1 ? source.length : open)
    const inside = open + 2
    const isTrimmedBefore = open !== -1 && source[inside] === '-' && isBlank(source[inside + 1])
    const trimmed = trimText(text, isTrimming, isTrimmedBefore)
    if (trimmed !== '') tokens.push({ type: 'text', at, text: trimmed })
    if (open === -1) return [...tokens, { type: 'end', at: source.length }]
    ;({ at, isTrimming } = lexAction(source, isTrimmedBefore ? inside + 2 : inside, tokens))
  }
}

const isBlank = (character: string | undefined): boolean =>
  character !== undefined && ' \t\r\n'.includes(character)

function trimText(text: string, isStart: boolean, isEnd: boolean): string {
  let from = 0
  let to = text.length
  if (isStart) while (from < to && isBlank(text[from])) from++
  if (isEnd) while (to > from && isBlank(text[to - 1])) to--
  return text.slice(from, to)
}

interface ActionEnd {
  readonly at: number
  readonly isTrimming: boolean
}

function lexAction(source: string, from: number, tokens: Token[]): ActionEnd {
  if (source.startsWith('/*', from)) return skipComment(source, from)
  tokens.push({ type: 'open', at: from })
  let at = from
  for (;;) {
    const next = skipBlanks(source, at)
    const isSpaced = next > at
    at = next
    const end = matchClosing(source, at, isSpaced)
    if (end) {
      tokens.push({ type: 'close', at })
      return end
    }
    if (at >= source.length) throw errorAt(source, at, 'unclosed action')
    const token = tokenAt(source, at, isSpaced)
    tokens.push(token)
    at += token.text.length
  }
}

function skipComment(source: string, from: number): ActionEnd {
  const end = source.indexOf('*/', from)
  if (end === -1) throw errorAt(source, from, 'unclosed comment')
  const next = skipBlanks(source, end + 2)
  const closed = matchClosing(source, next, next > end + 2)
  // After a comment, Go allows white space only before a trim marker.
  if (!closed || (next > end + 2 && !closed.isTrimming))
    throw errorAt(source, from, 'comment ends before closing delimiter')
  return closed
}

function skipBlanks(source: string, at: number): number {
  blank.lastIndex = at
  blank.test(source)
  return blank.lastIndex
}

function matchClosing(source: string, at: number, isSpaced: boolean): ActionEnd | undefined {
  if (source.startsWith('}}', at)) return { at: at + 2, isTrimming: false }
  return isSpaced && source.startsWith('-}}', at) ? { at: at + 3, isTrimming: true } : undefined
}

function tokenAt(source: string, at: number, isSpaced: boolean): Extract<Token, { isSpaced: boolean }> {
  for (const [type, pattern] of patterns) {
    pattern.lastIndex = at
    const [text] = pattern.exec(source) ?? []
    if (text !== undefined) return { type, at, text, isSpaced }
  }
  const character = String.fromCodePoint(source.codePointAt(at) as number)
  if (character === '"') throw errorAt(source, at, 'unterminated quoted string')
  if (character === '`') throw errorAt(source, at, 'unterminated raw quoted string')
  if (character === "'") throw errorAt(source, at, 'unterminated character constant')
  throw errorAt(source, at, `unexpected ${JSON.stringify(character)} in command`)
}
