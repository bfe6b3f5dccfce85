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
])('%j can be used', (source) => {
  expect(() => checkGrammar(source)).not.toThrow()
})

test.each([
  ['', 'no rule root'],
  ['start ::= "a"', 'no rule root'],
  ['root ::= other', 'asks for other'],
  ['root ::= "a', 'ends too early in line 1'],
  ['root ::= "a"\nb : "c"', '::= is expected in line 2'],
  ['root ::= "\\q"', 'an escape is unknown'],
  ['root ::= "\\x4"', '2 hex digits'],
  ['root ::= []', 'a class is empty'],
  ['root ::= [z-a]', 'wrong way round'],
  ['root ::= ("a"', ') is expected'],
  ['root ::= "a"{3,2}', 'ends before it begins'],
  ['root ::= "a"{2001}', 'more than 2000 repetitions'],
  ['root ::= "a"{0,99999999999999999999}', 'more than 2000 repetitions'],
  ['root ::= *', 'a new line is expected'],
  ['root ::= "a"\nroot ::= "b"', 'is there twice'],
  ['root ::= <think>', 'tokens are not supported'],
  ['root ::= root "a"', 'root begins with itself'],
  ['root ::= empty root "x" | ""\nempty ::= nothing\nnothing ::= ""', 'root begins with itself'],
  ['root ::= a\na ::= b?\nb ::= c\nc ::= a "x"', 'begins with itself'],
  ['root ::= ("a"?)*', 'repeats what can be empty'],
  ['root ::= a*\na ::= b\nb ::= ""', 'repeats what can be empty'],
  [`root ::= ${'" "? '.repeat(30)}`, 'optional parts in a row'],
  [`root ::= ${'('.repeat(501)}"a"${')'.repeat(501)}`, 'groups are more than 500 deep'],
  [`root ::= "a"${'?'.repeat(1_000)}`, 'more than 4 repetitions stand in a row'],
  ['root ::= "\ud800"', 'halves of characters'],
  [`root ::= "${'a'.repeat(300_000)}"`, 'longer than'],
  ['root ::= ((("a"{1000}){1000}){1000})', 'too large'],
])('%j is refused: %s', (source, reason) => {
  expect(() => checkGrammar(source)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(reason) }),
  )
})

test('beginnings that double with each rule are refused quickly', () => {
  const rules = Array.from({ length: 60 }, (_, at) => `r${at} ::= r${at + 1} "a" | r${at + 1} "b"`)

  expect(() => checkGrammar(['root ::= r0', ...rules, 'r60 ::= "c"'].join('\n'))).toThrow(
    'can begin in more than',
  )
})

test('groups count, too, where rules begin with each other', () => {
  const rules = Array.from(
    { length: 14 },
    (_, at) => `r${at} ::= ${'('.repeat(50)}r${at + 1}${')'.repeat(50)}`,
  )

  expect(() => checkGrammar(['root ::= r0', ...rules, 'r14 ::= "c"'].join('\n'))).toThrow(
    'rules begin with each other',
  )
})

test('a grammar of very many parts is read', () => {
  expect(() => checkGrammar(`root ::= ${'.'.repeat(99_000)}`)).not.toThrow()
})

test('a long chain of beginnings is refused, from either end', () => {
  const rules = Array.from({ length: 5_000 }, (_, at) => `r${at} ::= r${at + 1}`)
  const source = ['root ::= r0', ...rules, 'r5000 ::= "c"']

  expect(() => checkGrammar(source.join('\n'))).toThrow('rules begin with each other')
  expect(() => checkGrammar(source.reverse().join('\n'))).toThrow('rules begin with each other')
})
