import { expect, test } from 'vitest'
import { characters, choice, optional, repeat, sequence, text } from './expressions.ts'
import { Grammar, printRules } from './grammar.ts'

const written = (make: (grammar: Grammar) => Parameters<Grammar['collectRules']>[0]) => {
  const grammar = new Grammar()
  return printRules(grammar.collectRules(make(grammar)))
}

test.each([
  [text('a"\\\n\u007fé😀'), '"a\\"\\\\\\x0a\\x7fé😀"'],
  [
    characters([0x61, 0x7a], [0x5d, 0x5d], [0x5e, 0x5e], [0x2d, 0x2d], [0x1f600, 0x1f64f]),
    '[a-z\\x5d\\x5e\\x2d\\U0001f600-\\U0001f64f]',
  ],
  [sequence(text('a'), choice(text('b'), text('c'))), '"a" ("b" | "c")'],
  [choice(sequence(text('a'), text('b')), sequence()), '"a" "b" | ""'],
  [repeat(sequence(text('a'), text('b')), 2, Number.POSITIVE_INFINITY), '("a" "b"){2,}'],
  [optional(optional(text('a'))), '("a"?)?'],
  [optional(choice(text('a'), text('b'))), '("a" | "b")?'],
  [repeat(characters([0x30, 0x39]), 1, 3), '[0-9]{1,3}'],
])('writes %j as GBNF', (expression, gbnf) => {
  expect(written(() => expression)).toBe(`root ::= ${gbnf}\n`)
})

test('equal rules are shared', () => {
  const grammar = written((grammar) =>
    sequence(grammar.define('one', text('x')), grammar.define('other', text('x'))),
  )

  expect(grammar).toBe('root ::= one-0 one-0\none-0 ::= "x"\n')
})

test('unproductive rules and rules that only they use are removed', () => {
  const grammar = written((grammar) => {
    const endless = grammar.reserve('endless')
    endless.setBody(sequence(text('a'), endless.rule))
    return choice(
      sequence(grammar.define('lost', text('b')), endless.rule),
      text('c'),
      optional(endless.rule),
    )
  })

  expect(grammar).toBe('root ::= "c" | ""\n')
})

test('a grammar that matches nothing has no rules', () => {
  expect(new Grammar().collectRules(choice()).size).toBe(0)
})
