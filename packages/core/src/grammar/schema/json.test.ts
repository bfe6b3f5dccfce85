import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../../test/support/gbnf-matcher.ts'
import { GbnfSampler } from '../../../../../test/support/gbnf-sampler.ts'
import { checkGrammar } from '../gbnf/check.ts'
import { buildOutputGrammar } from '../output-grammar.ts'

const jsonGrammar = buildOutputGrammar({ format: { type: 'json' } }) as string
const matcher = new GbnfMatcher(jsonGrammar)

test('accepts any compact JSON object', () => {
  const json = fc.dictionary(
    fc.string({ unit: 'binary' }),
    fc.jsonValue({ stringUnit: 'binary', maxDepth: 3 }),
  )
  fc.assert(
    fc.property(json, (value) => {
      const text = JSON.stringify(value)
      // The grammar rejects longer numbers on purpose (see `anyNumber`).
      fc.pre(!/\d{21}|e[+-]?\d{3}/.test(text) && !/\\ud[89a-f]/.test(text))

      expect([text, matcher.matches(text)]).toEqual([text, true])
    }),
  )
})

test.each([
  '[]',
  '"text"',
  '{"a":1,}',
  '{"a" :1}',
  '{"a":  1}',
  '{"a":01}',
  '{"a":1.}',
  '{"a":"\n"}',
  '{"a":"\\x"}',
  '{"a":"\\ud800"}',
  '{"a":"\\udc00"}',
  '{"a":1e999}',
  '{"a":1}\n',
  '{a:1}',
  '{',
])('rejects %j', (text) => {
  expect(matcher.matches(text)).toBe(false)
})

test.each(['{"a": 1, "b": [1, 2]}', '{"a":"\\ud83d\\ude00\\u00e9\\/"}', '{"a":-0.5e-10}', '{}'])(
  'accepts %j',
  (text) => {
    expect(matcher.matches(text)).toBe(true)
  },
)

test('samples parse as JSON objects', () => {
  const sampler = new GbnfSampler(jsonGrammar)
  for (let run = 0; run < 300; run++) {
    const value: unknown = JSON.parse(sampler.sample(Math.random))

    expect(Object.prototype.toString.call(value)).toBe('[object Object]')
  }
})

test('the JSON grammar passes the check for user grammars', () => {
  expect(() => checkGrammar(jsonGrammar)).not.toThrow()
})
