import { expect, test } from 'vitest'
import { checkGrammar } from './check.ts'

test.each([
  'root ::= "a"',
  'root ::= "yes" | "no"',
  'root ::= [^\\n]+ "\\n" # a line\n',
  'root ::= (\n  "a" |\n  item\n)+\nitem ::= "- " [a-z]{1,20} "\\n"',
  'root ::= "a" |\n "b"\r\nx-1 ::= .',
  'root ::= [a\\]\\-z\\x41\\u00e9\\U0001F600] "\\"\\\\" ("x"?)? y{2,} y{0,3} z{2}\ny ::= "y"\nz ::= "é"',
  'root ::= "(" root ")" | "x"',
  `root ::= ${'('.repeat(400)}"a"${')'.repeat(400)}`,
])('accepts %j', (source) => {
  expect(() => checkGrammar(source)).not.toThrow()
})

test.each([
  ['', 'no root rule'],
  ['start ::= "a"', 'no root rule'],
  ['root ::= other', 'refers to other, which is not defined'],
  ['root ::= "a', 'unexpected end in line 1'],
  ['root ::= "a"\nb : "c"', 'expected ::= in line 2'],
  ['root ::= "\\q"', 'unknown escape'],
  ['root ::= "\\x4"', '2 hex digits'],
  ['root ::= []', 'a character class is empty'],
  ['root ::= [z-a]', 'a character range is reversed'],
  ['root ::= ("a"', 'expected )'],
  ['root ::= "a"{3,2}', 'minimum of a repetition is above its maximum'],
  ['root ::= "a"{2001}', 'more than 2000 repetitions'],
  ['root ::= "a"{0,99999999999999999999}', 'more than 2000 repetitions'],
  ['root ::= *', 'expected a new line'],
  ['root ::= "a"\nroot ::= "b"', 'is defined twice'],
  ['root ::= <think>', 'tokens are not supported'],
  ['root ::= root "a"', 'root is left-recursive: it begins with itself'],
  [
    'root ::= empty root "x" | ""\nempty ::= nothing\nnothing ::= ""',
    'root is left-recursive: it begins with itself',
  ],
  ['root ::= a\na ::= b?\nb ::= c\nc ::= a "x"', 'begins with itself'],
  ['root ::= ("a"?)*', 'repeats an expression that can be empty'],
  ['root ::= a*\na ::= b\nb ::= ""', 'repeats an expression that can be empty'],
  [`root ::= ${'" "? '.repeat(30)}`, 'optional parts in a row'],
  [`root ::= ${'('.repeat(501)}"a"${')'.repeat(501)}`, 'groups are nested more than 500 levels deep'],
  [`root ::= "a"${'?'.repeat(1_000)}`, 'more than 4 consecutive repetition operators'],
  ['root ::= "\ud800"', 'unpaired surrogates'],
  [`root ::= "${'a'.repeat(300_000)}"`, 'longer than'],
  ['root ::= ((("a"{1000}){1000}){1000})', 'too large'],
])('rejects %j: %s', (source, reason) => {
  expect(() => checkGrammar(source)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(reason) }),
  )
})

test('exponentially many beginnings are rejected', () => {
  const rules = Array.from({ length: 60 }, (_, at) => `r${at} ::= r${at + 1} "a" | r${at + 1} "b"`)

  expect(() => checkGrammar(['root ::= r0', ...rules, 'r60 ::= "c"'].join('\n'))).toThrow(
    'can begin in more than',
  )
})

test('groups count towards the nesting limit of beginnings', () => {
  const rules = Array.from(
    { length: 14 },
    (_, at) => `r${at} ::= ${'('.repeat(50)}r${at + 1}${')'.repeat(50)}`,
  )

  expect(() => checkGrammar(['root ::= r0', ...rules, 'r14 ::= "c"'].join('\n'))).toThrow(
    'rules are nested at their beginning',
  )
})

test('accepts a sequence of 99,000 parts', () => {
  expect(() => checkGrammar(`root ::= ${'.'.repeat(99_000)}`)).not.toThrow()
})

test('a long chain of rules nested at their beginning is rejected, in either order', () => {
  const rules = Array.from({ length: 5_000 }, (_, at) => `r${at} ::= r${at + 1}`)
  const source = ['root ::= r0', ...rules, 'r5000 ::= "c"']

  expect(() => checkGrammar(source.join('\n'))).toThrow('rules are nested at their beginning')
  expect(() => checkGrammar(source.reverse().join('\n'))).toThrow('rules are nested at their beginning')
})

test('many beginnings are rejected if many rules are nested there', () => {
  const grammarOf = (depth: number): string => {
    const rules = Array.from({ length: depth }, (_, at) => `r${at} ::= r${at + 1} "x"`)
    const words = Array.from({ length: 500 }, (_, index) => `"${index}"`)
    return ['root ::= r0', ...rules, `r${depth} ::= ${words.join(' | ')}`].join('\n')
  }

  expect(() => checkGrammar(grammarOf(30))).not.toThrow()
  expect(() => checkGrammar(grammarOf(300))).toThrow('can begin in 500 ways')
})
