/** Splits a Lark grammar into tokens. */

export type LarkTokenKind = 'name' | 'string' | 'regexp' | 'number' | 'directive' | 'operator' | 'newline'

export interface LarkToken {
  readonly kind: LarkTokenKind
  readonly text: string
  readonly line: number
}

/** The error of a grammar that cannot be converted. The message is a clause that an error message can contain. */
export class LarkError extends Error {}

const kinds: readonly (readonly [kind: LarkTokenKind | undefined, pattern: RegExp])[] = [
  [undefined, /[ \t\r\f]+|(?:\/\/|#)[^\n]*/y],
  ['newline', /\n/y],
  ['string', /"(?:\\.|[^"\\\n])*"i?/y],
  ['regexp', /\/(?:\\.|[^\\/\n])+\/[a-z]*/y],
  ['directive', /%[a-z]+/y],
  ['name', /[!?]*[A-Za-z_][A-Za-z0-9_]*/y],
  ['number', /\d+/y],
  ['operator', /->|\.\.|[:|()[\]?*+~.,{}]/y],
]

export function* readTokens(source: string): Generator<LarkToken> {
  let line = 1
  for (let at = 0; at < source.length; ) {
    const [kind, text] = matchToken(source, at)
    if (text === undefined) throw new LarkError(`line ${line} has an unexpected character`)
    if (kind) yield { kind, text, line }
    if (kind === 'newline') line++
    at += text.length
  }
  yield { kind: 'newline', text: '\n', line }
}

function matchToken(
  source: string,
  at: number,
): readonly [kind: LarkTokenKind | undefined, text: string | undefined] {
  for (const [kind, pattern] of kinds) {
    pattern.lastIndex = at
    const [text] = pattern.exec(source) ?? []
    if (text !== undefined) return [kind, text]
  }
  return [undefined, undefined]
}
