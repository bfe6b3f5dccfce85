import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Automaton, accepts, TooComplexError } from './automaton.ts'
import { compilePattern, PatternError } from './pattern.ts'

const atoms = [
  'a',
  'b',
  '0',
  '.',
  '\\d',
  '\\w',
  '\\S',
  '[ab]',
  '[^a]',
  '[a-c0]',
  '\\n',
  '\\.',
  '^',
  '$',
  'é',
  '\\u{1F600}',
]
const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
  pattern: fc.array(tie('term'), { maxLength: 4 }).map((terms) => terms.join('')),
  term: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...atoms),
    fc
      .tuple(
        fc.constantFrom('a', '[ab]', '\\d'),
        fc.constantFrom('*', '+', '?', '{2}', '{1,}', '{0,2}', '*?'),
      )
      .map((parts) => parts.join('')),
    fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => `(${left}|${right})`),
    fc
      .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{1,2}'))
      .map(([inner, times]) => `(?:${inner})${times}`),
  ),
}))
const sample = fc.array(fc.constantFrom('a', 'b', 'c', '0', '1', '.', '\n', 'é', '😀', ' '), {
  maxLength: 6,
})

function searchIfSimple(source: string): Automaton | undefined {
  try {
    return compilePattern(source)
  } catch (error) {
    if (error instanceof TooComplexError) return undefined
    throw error
  }
}

test('a pattern accepts the texts in which RegExp finds a match', () => {
  fc.assert(
    fc.property(pattern, fc.array(sample, { minLength: 10, maxLength: 10 }), (source, texts) => {
      // The automaton does not support `^` after `$`, which only the empty text can match.
      fc.pre(!/\$.*\^/.test(source.replaceAll('[^a]', '')))
      const automaton = searchIfSimple(source)
      fc.pre(automaton !== undefined)

      for (const characters of texts) {
        const text = characters.join('')
        expect([source, text, accepts(automaton, text)]).toEqual([
          source,
          text,
          new RegExp(source, 'u').test(text),
        ])
      }
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['^[a-z]+$', 'abc', true],
  ['^[a-z]+$', 'abC', false],
  ['b', 'abc', true],
  ['^a|b$', 'ac', true],
  ['^a|b$', 'cb', true],
  ['^a|b$', 'cbc', false],
  ['^\\S+@\\S+\\.[a-z]{2,}$', 'x@y.org', true],
  ['^(?<year>\\d{4})-\\d\\d$', '2024-01', true],
  ['^[\\w-.]+$', 'a-b.c', true],
  ['^\\u{1F600}$', '😀', true],
  ['^\\ud83d\\ude00$', '😀', true],
  ['^.$', '😀', true],
  ['^\\-$', '-', true],
  ['^a{,2}$', 'a{,2}', true],
  ['^_\\-\\_$', '_-_', true],
  ['^^a$$', 'a', true],
  ['^(?:^a|b)$', 'a', true],
  ['(^|,)a($|,)', 'b,a', true],
  ['^x{0}y{2}$', 'yy', true],
  ['a^', 'a', false],
  ['', 'anything', true],
])('%j matches %j: %j', (source, text, found) => {
  expect(accepts(compilePattern(source), text)).toBe(found)
})

test.each([
  '(?=a)b',
  '(?<!a)b',
  '(a)\\1',
  '\\bword',
  '\\p{L}',
  '(?i:a)',
  '(?:\\p{L}\\-)',
  '\\u{1F600}\\-',
  '😀\\-',
  '(?<a>x)\\k<a>',
  '('.repeat(201) + ')'.repeat(201),
  '('.repeat(2_000) + ')'.repeat(2_000),
  '(',
  'a**',
  '[b-a]',
  'x'.repeat(4_001),
])('rejects %j', (source) => {
  expect(() => compilePattern(source)).toThrow(PatternError)
})

test.each([
  '(a|b)*a(a|b){30}',
  '^(((a{100}){100}){100}){100}$',
  '(.*a){500}',
  '(x+x+)+y',
  '^(a?){900}a{900}$',
  '([a-z]*[0-9]*){200}q{1000}',
])('%j is compiled or rejected as too complex within 5 s', (source) => {
  const start = performance.now()

  searchIfSimple(source)

  expect(performance.now() - start).toBeLessThan(5_000)
})
