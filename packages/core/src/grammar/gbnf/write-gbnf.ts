/** Writes GBNF (llama.cpp, `grammars/README.md`). */
import type { Range } from '../automata/ranges.ts'
import { type Expression, isEmptyExpression } from './expressions.ts'

export function writeExpression(expression: Expression, inside?: 'sequence' | 'repeat'): string {
  switch (expression.kind) {
    case 'text':
      return `"${[...expression.text].map(escapeText).join('')}"`
    case 'characters':
      return `[${expression.ranges.map(writeRange).join('')}]`
    case 'rule':
      return expression.name
    case 'sequence': {
      const parts = expression.parts.filter((part) => !isEmptyExpression(part))
      if (parts.length === 0) return '""'
      if (parts.length === 1) return writeExpression(parts[0] as Expression, inside)
      const written = parts.map((part) => writeExpression(part, 'sequence')).join(' ')
      return inside === 'repeat' ? `(${written})` : written
    }
    case 'choice': {
      if (expression.options.length === 1) return writeExpression(expression.options[0] as Expression, inside)
      const written = expression.options.map((option) => writeExpression(option)).join(' | ')
      return inside ? `(${written})` : written
    }
    case 'repeat': {
      const of = writeExpression(expression.of, 'repeat')
      const { min, max } = expression
      if (min === 1 && max === 1) return of
      return `${isRepeat(expression.of) ? `(${of})` : of}${writeRepeat(min, max)}`
    }
  }
}

/** Whether an expression is a repetition, even inside sequences and choices with one element. */
function isRepeat(expression: Expression): boolean {
  const parts =
    expression.kind === 'sequence' ? expression.parts.filter((part) => !isEmptyExpression(part)) : []
  const [only] = expression.kind === 'choice' ? expression.options : parts
  if (expression.kind === 'repeat') return true
  const isSingle = expression.kind === 'choice' ? expression.options.length === 1 : parts.length === 1
  return isSingle && only !== undefined && isRepeat(only)
}

function writeRepeat(min: number, max: number): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`
  if (min === max) return `{${min}}`
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`
}

function escapeText(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`
  const code = character.codePointAt(0) as number
  return code < 0x20 || code === 0x7f ? writeCode(code) : character
}

const writeRange = ([low, high]: Range) =>
  low === high ? writeCharacter(low) : `${writeCharacter(low)}-${writeCharacter(high)}`

const writeCharacter = (code: number) => {
  const character = String.fromCodePoint(code)
  return /[A-Za-z0-9 _.,:;/+@]/.test(character) ? character : writeCode(code)
}

function writeCode(code: number): string {
  const hex = code.toString(16)
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}
